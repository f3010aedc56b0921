"""Squeezes: take away a known part of one resource, show how much is really left, give it back.

One file a resource; a module of this room with an attribute ``SQUEEZES`` is found by its file name alone.
"""
