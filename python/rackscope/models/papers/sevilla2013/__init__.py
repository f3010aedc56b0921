"""Sevilla 2013: what its text prints of scale-up and scale-out (``printed``), and what follows (``reproduce``)."""

from __future__ import annotations

from rackscope.models.papers.sevilla2013.reproduce import reproduce

__all__ = ["reproduce"]
