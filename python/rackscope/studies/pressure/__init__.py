"""``study pressure``: which resources limit a workload, proven by squeezing them; and the matrix of several."""
