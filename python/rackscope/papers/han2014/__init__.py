"""Han 2014 (MICA and mTCP): ``printed`` has the numbers of its slides, ``page`` sets studies beside them."""
