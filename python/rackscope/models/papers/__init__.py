"""Models and tables of papers, reproduced and labelled as theirs: each package has ``reproduce() -> Reproduction``."""
