"""Papers: what each prints, its models, how its figures are made here, and the page that sets them side by side.

One folder a paper, whose ``page`` module has ``PAPER``, a ``base.Paper``. Adding that folder is all it takes.
"""
