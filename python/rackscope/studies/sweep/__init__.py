"""Parts of ``study sweep``: the grid, its order, one cell's measurement, and what the whole says."""
