"""The command line: the only place that prints or parses arguments. One file a verb; no logic.

A verb is a module of this room with ``HELP``, ``add_arguments(parser)`` and ``execute(arguments) -> int``; adding a
file is all it takes.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType, ModuleType
from typing import NoReturn

from rackscope import __version__
from rackscope.errors import RackscopeError

#: In the order in which a newcomer meets them.
_VERBS = ("run", "report", "compare", "calibrate", "doctor", "get", "serve")
_INTERRUPTED = 130
_INTERNAL_ERROR = 70

_GREETING = f"""rackscope {__version__}: what holds a workload back on this server, and how far it is from what
the hardware could do.

Start here:
  rackscope run cache ycsb-b        characterise the built-in cache engine: about a minute, leaves a report
  rackscope run memcached ycsb-b    the same for memcached (fetched without root if it is not installed)
  rackscope doctor                  what can be measured on this host, and what each lack costs
  rackscope calibrate               measure this host's ceilings once: runs are then judged against them
  rackscope --help                  everything else
"""


class _Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP: leave in the same orderly way as after Ctrl-C."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the ``rackscope`` command; returns the exit status."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if not argv:
        print(_GREETING, end="")
        return 0
    parser = _parser()
    parsed = parser.parse_args(argv)
    parsed.command_line = ("rackscope", *argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminate)
    try:
        return int(parsed.execute(parsed) or 0)
    except RackscopeError as error:
        print(f"rackscope: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("rackscope: stopped.", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (a pager, head): nothing to say, and nowhere to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get("RACKSCOPE_TRACEBACK"):
            raise
        print(
            f"rackscope: a defect of rackscope itself: {type(error).__name__}: {error}. "
            "Set RACKSCOPE_TRACEBACK=1 and run it again to see where, and report it.",
            file=sys.stderr,
        )
        return _INTERNAL_ERROR


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _Terminated


def _verb(name: str) -> ModuleType:
    import importlib

    return importlib.import_module(f"{__name__}.{name}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rackscope",
        description="What holds a workload back on this server, and how far it is from what the hardware could do.",
        epilog="'rackscope VERB --help' says more about each.",
    )
    parser.add_argument("--version", action="version", version=f"rackscope {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for name in _VERBS:
        module = _verb(name)
        verb = verbs.add_parser(
            name,
            help=module.HELP,
            description=(module.__doc__ or module.HELP).strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(verb)
        verb.set_defaults(execute=module.execute)
    return parser
