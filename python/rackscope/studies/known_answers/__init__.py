"""``study known-answers``: verdicts judged on workloads whose limit is built in."""
