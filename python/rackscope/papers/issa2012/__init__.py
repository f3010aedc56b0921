"""Issa and Figueira 2012: ``equations`` (1 to 6), ``printed`` (their numbers), ``page`` (both side by side)."""
