"""Start a system in the foreground, on loopback, until Ctrl-C.

Examples:
  rackscope serve                        the cache engine on 127.0.0.1:11211
  rackscope serve memcached --port 11300 --set threads=2
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from rackscope.cli import arguments as common

HELP = "start a system in the foreground, on loopback, until Ctrl-C"

_LOOK_SECONDS = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what can be asked for."""
    parser.add_argument("system", nargs="?", default="cache", metavar="SYSTEM", help="the system (default: cache)")
    common.add_system_settings(parser, "a knob of the system")


def execute(arguments: argparse.Namespace) -> int:
    """Start it, say where it is, wait."""
    from rackscope.cli.progress import ProgressLine
    from rackscope.runs.placement import place
    from rackscope.systems import find_system, resolve_knobs
    from rackscope.systems.base import Launch

    system = find_system(arguments.system)
    cores = arguments.cores or tuple(sorted(os.sched_getaffinity(0)))
    place(sorted(os.sched_getaffinity(0)), cores)
    knobs = resolve_knobs(system, common.settings_mapping(arguments.set), tuned=arguments.tuned, cores=cores)
    with ProgressLine() as progress:
        acquired = system.acquire(fetch=not arguments.no_fetch, progress=progress.say)
    with tempfile.TemporaryDirectory(prefix="rackscope-serve-") as folder:
        Path(folder).chmod(0o755)
        launch = Launch(
            folder=Path(folder),
            cores=cores,
            knobs=knobs.values,
            endpoint_kind=arguments.endpoint,
            port=arguments.port or (system.usual_port if arguments.endpoint == "tcp" else None),
        )
        running = system.start(acquired, launch)
        try:
            running.wait_ready()
            print(
                f"{system.name} {acquired.version} is ready on {running.endpoint.describe()}; Ctrl-C ends it.",
                flush=True,
            )
            while True:
                time.sleep(_LOOK_SECONDS)
                running.check_alive()
        except KeyboardInterrupt:
            return 0
        finally:
            running.stop()
