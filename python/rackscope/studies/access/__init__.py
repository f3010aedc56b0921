"""Parts of ``study access``: what is measured, by which program, and what it says."""
