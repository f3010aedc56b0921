"""Sevilla 2013: what its text prints of scale-up and scale-out (``printed``), and what follows (``page``)."""
