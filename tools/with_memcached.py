"""Run a command that finds memcached: ``python tools/with_memcached.py cargo test``.

``RACKSCOPE_MEMCACHED`` is its program, and what that needs to run is in the environment.
"""

from __future__ import annotations

import os
import signal
import sys

from rackscope.systems.acquire import acquire_by_name


def main() -> None:
    """Become the command."""
    # Python ignores these, and what it becomes would too; a test is about a file that grows too large.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    acquired = acquire_by_name("memcached", fetch=False, progress=lambda _text: None)
    environment = {**os.environ, **acquired.environment, "RACKSCOPE_MEMCACHED": str(acquired.program)}
    os.execvpe(sys.argv[1], sys.argv[1:], environment)


if __name__ == "__main__":
    main()
