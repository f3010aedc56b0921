"""The command line: the only place that prints or parses arguments. One file a verb; no logic.

A verb is a module of this room with ``HELP``, ``add_arguments(parser)`` and ``execute(arguments) -> int``; adding a
file is all it takes.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import re
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn

from rackscope import __version__
from rackscope.cli.arguments import kept_command_line
from rackscope.cli.output import abandon_output, complain, make_printable, print_json
from rackscope.errors import Interrupted, RackscopeError, UsageError
from rackscope.studies import STUDY_MODULE

#: In the order in which a newcomer meets them.
_VERBS = (
    "run", "study", "report", "compare", "matrix", "project", "paper", "models", "cost", "advise",
    "calibrate", "doctor", "get", "serve", "prune",
)  # fmt: skip
_INTERRUPTED = 130
_INTERNAL_ERROR = 70

_GREETING = f"""rackscope {__version__}: what holds a workload back on this server, and how far it is from what
the hardware could do.

Start here:
  rackscope run cache ycsb-b        characterise the built-in cache engine: about a minute, leaves a report
  rackscope run memcached ycsb-b    the same for memcached (fetched without root if it is not installed)
  rackscope doctor                  what can be measured on this host, what is missing, and what that disables
  rackscope calibrate               measure this host's ceilings once: later runs are compared with them
  rackscope --help                  everything else
"""


class _Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP: leave in the same orderly way as after Ctrl-C."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; the whole usage is what --help is for. So do the parsers of verbs."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*arguments, **{**settings, "allow_abbrev": False})
        # Newer versions of Python have this: '--data -5G' is a value that is wrong, and not a value that is missing.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        raise UsageError(message[:1].lower() + message[1:], f"See '{self.prog} --help'.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the ``rackscope`` command; returns the exit status."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    make_printable()
    try:
        return _run(argv)
    except RackscopeError as error:
        return _fail(error, argv)
    except KeyboardInterrupt as stop:
        details = {}
        if isinstance(stop, Interrupted):
            details = stop.details
            if stop.kept:
                complain(stop.kept)
        complain("stopped.")
        _print_failure({"status": "interrupted", **details}, argv)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (a pager, head): nothing to say, and nowhere to say it.
        abandon_output()
        return 1
    except Exception as error:
        if os.environ.get("RACKSCOPE_TRACEBACK"):
            raise
        return _fail(_unforeseen(error), argv)


def _unforeseen(error: Exception) -> RackscopeError:
    # An error about a file names it: of those that do not, these are about the output.
    outputs = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)
    if isinstance(error, OSError) and error.filename is None and error.errno in outputs:
        abandon_output()
        return RackscopeError(f"cannot write the output: {error.strerror}", "Send it elsewhere.")
    said, trace = f"{type(error).__name__}: {error}", "Set RACKSCOPE_TRACEBACK=1 and run it again to see"
    if place := _innermost(error, STUDY_MODULE):
        return RackscopeError(f"{place}: {said}", f"Correct the file. {trace} how it came there.")
    defect = RackscopeError(
        f"a defect of rackscope itself, or of a file added to it ({_innermost(error, 'rackscope.')}): {said}",
        f"{trace} how it came there, and report it.",
    )
    defect.exit_status = _INTERNAL_ERROR
    return defect


def _innermost(error: Exception, module: str) -> str:
    """File and line of the innermost frame in a module whose name begins like this; empty where there is none."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__", "").startswith(module):
            place = f"{frame.f_code.co_filename}, line {line}"
    return place


def _run(argv: list[str]) -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Under nohup a hang-up is ignored, and stays so.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _terminate)
    if not argv:
        print(_GREETING, end="")
        status = 0
    else:
        parsed = _parser(argv).parse_args(argv)
        parsed.command_line = kept_command_line(argv)
        if parsed.undoes_leftovers:
            from rackscope.squeezes.recovery import recover

            # What commands that were killed left squeezed. Where there is nothing, only a folder is looked at.
            for sentence in recover():
                complain(f"{sentence}.")
        status = int(parsed.execute(parsed) or 0)
    # Here, where a reader that went away can still be told from success.
    sys.stdout.flush()
    return status


def _fail(error: RackscopeError, argv: Sequence[str]) -> int:
    """One line on standard error and, where JSON was asked for, one object on standard output."""
    if error.kept:
        complain(error.kept)
    complain(str(error))
    _print_failure({"status": "failed", "error": error.what, "advice": error.advice, **error.details}, argv)
    return error.exit_status


def _print_failure(content: dict[str, Any], argv: Sequence[str]) -> None:
    if "--json" in argv:
        try:
            print_json(content)
        except OSError:
            abandon_output()


def _terminate(number: int, _frame: FrameType | None) -> NoReturn:
    raise _Terminated(f"stopped by {signal.Signals(number).name}")


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    # Only the verb that is asked for declares its arguments: some have much to import for that.
    chosen = next((word for word in argv if not word.startswith("-")), None)
    parser = _Parser(
        prog="rackscope",
        description="What holds a workload back on this server, and how far it is from what the hardware could do.",
        epilog="'rackscope VERB --help' says more about each.",
    )
    parser.add_argument("--version", action="version", version=f"rackscope {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for name in _VERBS:
        module = importlib.import_module(f"{__name__}.{name}")
        verb = verbs.add_parser(
            name,
            help=module.HELP.replace("%", "%%"),
            description=(module.__doc__ or module.HELP).strip(),
        )
        if name == chosen:
            module.add_arguments(verb)
        verb.set_defaults(execute=module.execute, undoes_leftovers=getattr(module, "UNDOES_LEFTOVERS", True))
    return parser
