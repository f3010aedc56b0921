"""Parts of ``study wall``: which sizes, one size's measurement under a limit, and what all of them say."""
