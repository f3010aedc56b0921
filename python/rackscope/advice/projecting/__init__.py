"""From runs here to servers that are not here."""
