"""Start a system in the foreground, on loopback, until Ctrl-C.

Examples:
  rackscope serve                        the cache engine on 127.0.0.1:11211
  rackscope serve memcached --port 11300 --set threads=2
"""

from __future__ import annotations

import argparse
import time

from rackscope.cli import arguments as common

HELP = "start a system in the foreground, on loopback, until Ctrl-C"

_LOOK_SECONDS = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("system", nargs="?", default="cache", metavar="SYSTEM", help="the system (default: cache)")
    common.add_system_settings(parser, "a knob of the system")


def execute(arguments: argparse.Namespace) -> int:
    from rackscope.api.systems import serving
    from rackscope.cli.progress import ProgressLine

    try:
        with (
            ProgressLine() as progress,
            serving(
                arguments.system,
                settings=common.settings_mapping(arguments.set),
                tuned=arguments.tuned,
                cores=arguments.cores,
                endpoint_kind=arguments.endpoint,
                port=arguments.port,
                fetch=not arguments.no_fetch,
                progress=progress,
            ) as (acquired, running),
        ):
            progress.clear()
            where = running.endpoint.describe()
            print(f"{acquired.name} {acquired.version} is ready on {where}; Ctrl-C ends it.", flush=True)
            while True:
                time.sleep(_LOOK_SECONDS)
                running.check_alive()
    except KeyboardInterrupt:
        return 0
