"""Awasthi and others 2015: ``printed`` has its tables and the numbers of its text, ``page`` sets ours beside them."""
