"""Parts of ``study peers``: what is asked of everybody, how they are measured side by side, and what it says."""
