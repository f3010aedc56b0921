"""What scripts and notebooks import, by names in ``rackscope`` itself. Prints nothing, raises ``rackscope.errors``."""
