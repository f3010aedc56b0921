"""The kinds of ``rackscope advise``, one file each: ``HELP``, ``add_arguments(parser)``, ``execute(arguments)``."""
