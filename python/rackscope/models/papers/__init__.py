"""Models and tables of papers, reproduced and labelled as theirs."""
