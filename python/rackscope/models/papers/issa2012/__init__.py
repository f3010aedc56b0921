"""Issa and Figueira 2012: ``equations`` (1 to 6), ``printed`` (their numbers), ``reproduce`` (both side by side)."""

from __future__ import annotations

from rackscope.models.papers.issa2012.reproduce import reproduce

__all__ = ["reproduce"]
