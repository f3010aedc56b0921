"""Parts of ``study colocate``: the works, how they are measured alone and in pairs, and what is said of them."""
