"""Run a workload against a system, and keep what is needed to believe the result."""
