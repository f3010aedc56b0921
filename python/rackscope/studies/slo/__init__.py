"""``study slo``: the highest rate within a latency bound."""
