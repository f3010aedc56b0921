"""What scripts and notebooks import; the command line is a user of it. Prints nothing, raises ``rackscope.errors``.

The names are in ``rackscope`` itself: ``rackscope.read``, ``rackscope.run``, ``rackscope.study``.
"""
