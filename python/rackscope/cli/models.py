"""Models that predict servers never seen: what there is, and how far each is off.

Examples:
  rackscope models list
  rackscope models predict processor='AMD EPYC 9654' chips=2 cores=192 mhz=2400 memory_gb=384 year=2023
  rackscope models validate
  rackscope models validate --on ../shared/data --only core-count --json
  rackscope models validate --fit ../shared/data --on newer-servers
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from rackscope.cli import arguments as common
from rackscope.cli.output import complain, open_console, print_json
from rackscope.errors import RackscopeError, UsageError

if TYPE_CHECKING:
    from rackscope.models.trained.model import Model
    from rackscope.models.trained.validation import Score

HELP = "predict servers never seen by models, and say how far each model is off"
UNDOES_LEFTOVERS = False

#: What the bar asks of models and no public table can tell.
_NO_TABLE = (
    "time at another frequency on the same host: no public table has it; 'validate_execution_time' leaves frequencies "
    "of your own measurements out",
    "slowdown of co-located systems: measured pair by pair, no public table",
)
#: Quarters that are held out for pairs.
_TIMES = 20
_VALIDATE = """How far each model is off on servers that it never saw, and how often its intervals of 90 % hold.

With one folder: CPU models are left out of the fit and predicted, one by one; then providers or servers; then later
years from the years before. With --fit and --on: fitted on all of one folder, judged on the other.
Errors are |predicted / measured - 1|. Files are those of docs/models.md, as .csv, .csv.gz or .parquet."""


_PREDICT = """Predict a server from what is known of it, with every model that this suffices for.

Fits come with rackscope; no tables are needed. Values are numbers, words, or numbers by name:
  rackscope models predict processor='AMD EPYC 9654' chips=2 cores=192 mhz=2400 memory_gb=384 year=2023
  rackscope models predict processor='AMD EPYC 7763' hardware_threads=16 threads_per_core=2 workers=16 \\
    read_bandwidth_dram_mb_s=90000 read_bandwidth_l2_mb_s=700000 operations_per_second=1:1500,16:14000"""
_FIT = """Fit each model to tables and write one JSON file a model, with its errors on processors left out of the fit.

The files hold made-up servers with what the model says of them, no row of a table. Those that rackscope carries were
written so: 'rackscope models fit --tables FOLDER --out python/rackscope/models/fitted'. This takes minutes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    def declare(name: str, action: Callable[[argparse.Namespace], int], what: str, description: str) -> Any:
        found = actions.add_parser(
            name,
            help=what,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        found.set_defaults(action=action)
        return found

    listing = declare("list", _list, "what each model needs and predicts", "What each model needs and predicts.")
    predicting = declare("predict", _predict, "what a server that is described would do, with intervals", _PREDICT)
    fitting = declare("fit", _fit, "fit the models to tables, and write files that hold no row of them", _FIT)
    validating = declare("validate", _validate, "errors and coverage on servers never seen", _VALIDATE)
    predicting.add_argument(
        "says",
        metavar="NAME=VALUE",
        nargs="*",
        type=common.setting,
        help="what is known of it, as 'models list' names it",
    )
    predicting.add_argument(
        "--server", dest="file", metavar="FILE", type=common.path, help="the same as TOML; NAME=VALUE overrides it"
    )
    predicting.add_argument(
        "--fit", metavar="FOLDER", type=common.path, help="fit on the tables there, not the fits that rackscope carries"
    )
    fitting.add_argument(
        "--tables", metavar="FOLDER", type=common.path, help="the tables (default: RACKSCOPE_DATA, else ../shared/data)"
    )
    fitting.add_argument(
        "--out", metavar="FOLDER", type=common.path, default="fits", help="where files are written (default: fits)"
    )
    validating.add_argument("--fit", metavar="FOLDER", type=common.path, help="fit on all of this folder's tables")
    validating.add_argument(
        "--on",
        metavar="FOLDER",
        type=common.path,
        help="the folder to judge on (default: ../shared/data, or what RACKSCOPE_DATA names)",
    )
    validating.add_argument(
        "--hold-out",
        metavar="N",
        type=common.positive_count,
        help="instead: hold out a quarter of the CPU models, N times another, and fit on the rest",
    )
    validating.add_argument(
        "--pairs",
        action="store_true",
        help="instead: ratios of redis between two servers, by each way that 'project' knows",
    )
    for one in (predicting, fitting, validating):
        one.add_argument(
            "--only", metavar="MODEL", action="append", default=[], help="only this model; may be given again"
        )
    shown = validating.add_mutually_exclusive_group()
    shown.add_argument("--markdown", action="store_true", help="print the table as docs/models.md has it")
    for one in (listing, predicting, fitting, shown):
        common.add_json(one)


def execute(arguments: argparse.Namespace) -> int:
    return int(arguments.action(arguments))


def _predict(arguments: argparse.Namespace) -> int:
    from rackscope.cli.model_predict import predict_server

    return predict_server(arguments)


def _fit(arguments: argparse.Namespace) -> int:
    # Thousands of small matrices: threads of the linear algebra, which is loaded below, would wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from rackscope.cli.model_fit import fit_models

    return fit_models(arguments)


def _list(arguments: argparse.Namespace) -> int:
    from rich.padding import Padding
    from rich.text import Text

    from rackscope.models.trained import list_models

    models = list_models()
    if arguments.json:
        print_json({"models": [_described(model) for model in models]})
        return 0
    console = open_console()
    for model in models:
        console.print(f"{model.name}: {model.help}", style="bold", markup=False)
        lines = {
            "known there": model.measured,
            "predicted": f"{model.predicted}, in {model.unit}",
            "asked for": ", ".join(one.name + " (optional)" * one.optional for one in model.inputs),
            "fitted on": ", ".join(model.tables),
        }
        for name, text in lines.items():
            console.print(Padding(Text(f"{name}: {text}"), (0, 0, 0, 2)))
    return 0


def _described(model: Model) -> dict[str, Any]:
    return {
        "name": model.name,
        "help": model.help,
        "unit": model.unit,
        "tables": model.tables,
        "inputs": [{"name": one.name, "meaning": one.meaning, "optional": one.optional} for one in model.inputs],
        "measured": model.measured,
        "predicted": model.predicted,
        "aim_median_error": model.aim.median,
        "aim_p90_error": model.aim.p90,
    }


def _validate(arguments: argparse.Namespace) -> int:
    """Judge what can be judged; a model whose tables cannot serve is named, and the status is then 1."""
    # Thousands of small matrices: threads of the linear algebra, which is loaded below, would wait for each other most
    # of the time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from rackscope.cli.model_tables import default_folder, read_tables
    from rackscope.models.trained import find_model, list_models
    from rackscope.models.trained.validation import hold_out, judge, validate

    if arguments.pairs:
        return _validate_pairs(arguments)
    if arguments.hold_out and arguments.fit is not None:
        raise UsageError("--hold-out splits one folder and --fit asks for two", "Give one of them.")
    models = tuple(find_model(name) for name in dict.fromkeys(arguments.only)) or list_models()
    on = arguments.on if arguments.on is not None else default_folder()
    wanted = tuple(sorted({table for model in models for table in model.tables}))
    judged_on = read_tables(on, wanted)
    fit_on = judged_on if arguments.fit is None else read_tables(arguments.fit, wanted)
    scores: list[Score] = []
    not_judged: dict[str, RackscopeError] = {}
    absent: set[str] = set()
    left_out: dict[str, int] = {}
    for model in models:
        if not arguments.only and not all(table in judged_on.frames for table in model.tables):
            absent.add(model.name)
        try:
            examples = model.examples(judged_on.of(model))
            left_out[model.name] = examples.incomplete
            if arguments.hold_out:
                scores += hold_out(model, examples, arguments.hold_out, partial(_tell, arguments, model.name))
            elif arguments.fit is None:
                scores += validate(model, examples, partial(_tell, arguments, model.name))
            else:
                scores += judge(model, model.examples(fit_on.of(model)), examples)
        except RackscopeError as error:
            not_judged[model.name] = error
    if not scores:
        raise next(iter(not_judged.values()))
    for name, reason in not_judged.items():
        complain(f"{name} was not judged: {reason}")
    if arguments.json:
        print_json(
            {
                "fitted_on": str(arguments.fit if arguments.fit is not None else on),
                "judged_on": str(on),
                "confidence": 0.9,
                "models": {model.name: _described(model) for model in models},
                "scores": [score.to_dict() for score in scores],
                "rows_left_out_as_incomplete": left_out,
                "not_judged": {name: str(reason) for name, reason in not_judged.items()},
                "no_public_table": _NO_TABLE,
            }
        )
    else:
        if arguments.markdown:
            _show(("model", "left out", "of", *_CELLS), [_wide(score) for score in scores], 1, as_markdown=True)
        else:
            _show(("model", "left out", *_SHORT), [_narrow(score) for score in scores], 1, as_markdown=False)
        _print_notes(scores, left_out)
    # A folder may hold only some of the tables; a table that is there and cannot serve is a failure.
    return 1 if set(not_judged) - absent else 0


def _validate_pairs(arguments: argparse.Namespace) -> int:
    from rackscope.cli.model_tables import default_folder, read_tables
    from rackscope.models.trained.cloud_servers import TABLES
    from rackscope.models.trained.pair_validation import validate_pairs

    if arguments.fit is not None or arguments.only:
        raise UsageError("--pairs judges the one model of redis on one folder", "Leave out --fit and --only.")
    on = arguments.on if arguments.on is not None else default_folder()
    times = arguments.hold_out or _TIMES
    scores = validate_pairs(read_tables(on, TABLES).frames, times, partial(_tell, arguments, "pairs of redis"))
    if arguments.json:
        print_json({"judged_on": str(on), "confidence": 0.9, "scores": [asdict(score) for score in scores]})
        return 0
    rows = [
        (
            score.part,
            score.of,
            score.way,
            f"{100 * score.answered:.0f} %",
            f"{100 * score.median_error:.1f} %",
            f"{100 * score.p90_error:.0f} %",
            f"{100 * score.coverage:.1f} %",
            f"x{score.interval_ratio:.2f}",
        )
        for score in scores
    ]
    columns = ("redis", "pairs", "by", "answered", "median", "p90", "90 % holds", "ends")
    _show(columns, rows, 2, as_markdown=arguments.markdown)
    return 0


def _tell(arguments: argparse.Namespace, name: str, what: str) -> None:
    if not arguments.json:
        complain(f"{name}: {what} ...")


_CELLS = ("predictions", "CPU models", "median error", "p90 error", "90 % interval holds")
_SHORT = ("predictions", "CPU models", "median", "p90", "90 % holds")


def _wide(score: Score) -> tuple[str, ...]:
    """Model, what was left out, of which rows, and ``_CELLS``."""
    return score.model, score.split, score.what, *_cells(score, wide=True)


def _narrow(score: Score) -> tuple[str, ...]:
    """Model with its aims, what was left out, and ``_SHORT``."""
    aims = {"median": score.aim_median, "p90": score.aim_p90}
    said = ", ".join(f"{name} {100 * aim:.0f} %" for name, aim in aims.items() if aim is not None)
    split = score.split if score.what == "all" else f"  {score.what}"
    return f"{score.model} (aims: {said})", split, *_cells(score, wide=False)


def _cells(score: Score, *, wide: bool) -> tuple[str, ...]:
    return (
        f"{score.predictions}" + (f" + {score.refused} refused" if score.refused else ""),
        f"{score.processors}" + (f" ({score.processors_seen} seen)" if score.processors_seen and wide else ""),
        _error(score.median_error, score.aim_median, wide=wide),
        _error(score.p90_error, score.aim_p90, wide=wide),
        f"{100 * score.coverage:.1f} %, x{score.interval_ratio:.2f}" if score.predictions else "-",
    )


def _error(error: float, aim: float | None, *, wide: bool) -> str:
    """An error in percent, marked where it misses its aim."""
    if math.isnan(error):
        return "-"
    misses = aim is not None and error > aim
    if wide and aim is not None:
        return f"{100 * error:.1f} % ({'misses' if misses else 'aim'} {100 * aim:.0f} %)"
    return f"{'! ' if misses else ''}{100 * error:.1f} %"


def _show(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], title: int, *, as_markdown: bool) -> None:
    """One Markdown table, or in the terminal one for all rows that agree in the first ``title`` cells."""
    from rackscope.cli.document import print_table
    from rackscope.papers.document import Table

    console = open_console()
    if as_markdown:
        console.print(Table(columns, tuple(rows)).markdown(), markup=False, soft_wrap=True)
        return
    for name in dict.fromkeys(row[:title] for row in rows):
        console.print(f"\n{', '.join(name)}", style="bold", markup=False)
        print_table(console, Table(columns[title:], tuple(row[title:] for row in rows if row[:title] == name)))
    console.print(
        "\nErrors are |predicted / measured - 1|; '!' is above its aim. Ends: upper end / lower end, median (x)."
    )


def _print_notes(scores: list[Score], left_out: dict[str, int]) -> None:
    console = open_console()
    if any(score.refused for score in scores):
        console.print(
            "'refused': far outside of what was fitted, or an interval over a factor of 20: a user gets no number."
        )
    for name, count in left_out.items():
        if count:
            console.print(f"{name}: {count} rows lack something that is needed.", markup=False)
    for what in _NO_TABLE:
        console.print(f"Not judged: {what}.", markup=False)
