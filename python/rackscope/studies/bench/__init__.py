"""The bench that studies stand on: sessions with squeezes, windows of load, what else ran on the host meanwhile."""
