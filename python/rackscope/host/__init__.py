"""The host: what it is (``inventory``), what it can give (``calibration``) and what is missing (``checks``)."""
