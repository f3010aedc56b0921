"""Parts of ``study transports``: what is measured, how, and what it says."""
