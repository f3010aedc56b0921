"""Rackscope: what holds a workload back on a server, and how far it is from what the hardware could do."""

__version__ = "0.1.0"
