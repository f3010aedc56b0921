"""Papers: one folder each, whose ``page`` module has ``PAPER``, a ``base.Paper``. Adding it is all it takes."""
