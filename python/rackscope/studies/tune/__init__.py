"""``study tune``: which knobs make a system faster."""
