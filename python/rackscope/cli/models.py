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
    """Declare ``list`` and ``validate``."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="what each model needs and predicts", allow_abbrev=False)
    common.add_json(listing)
    listing.set_defaults(action=_list)
    predicting = actions.add_parser(
        "predict",
        help="what a server that is described would do, with intervals",
        description=_PREDICT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
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
        "--only", metavar="MODEL", action="append", default=[], help="only this model; may be given again"
    )
    predicting.add_argument(
        "--fit", metavar="FOLDER", type=common.path, help="fit on the tables there, not the fits that rackscope carries"
    )
    common.add_json(predicting)
    predicting.set_defaults(action=_predict)
    fitting = actions.add_parser(
        "fit",
        help="fit the models to tables, and write files that hold no row of them",
        description=_FIT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    fitting.add_argument(
        "--tables", metavar="FOLDER", type=common.path, help="the tables (default: RACKSCOPE_DATA, else ../shared/data)"
    )
    fitting.add_argument(
        "--out", metavar="FOLDER", type=common.path, default="fits", help="where files are written (default: fits)"
    )
    fitting.add_argument(
        "--only", metavar="MODEL", action="append", default=[], help="only this model; may be given again"
    )
    fitting.set_defaults(action=_fit)
    validating = actions.add_parser(
        "validate",
        help="errors and coverage on servers never seen",
        description=_VALIDATE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
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
    validating.add_argument(
        "--only", metavar="MODEL", action="append", default=[], help="only this model; may be given again"
    )
    shown = validating.add_mutually_exclusive_group()
    shown.add_argument("--markdown", action="store_true", help="print the table as docs/models.md has it")
    common.add_json(shown)
    validating.set_defaults(action=_validate)


def execute(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
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
        (_print_markdown if arguments.markdown else _print_tables)(scores)
        _print_notes(left_out)
    # A folder may hold only some of the tables; a table that is there and cannot serve is a failure.
    return 1 if set(not_judged) - absent else 0


def _validate_pairs(arguments: argparse.Namespace) -> int:
    from rackscope.cli.model_tables import default_folder, read_tables
    from rackscope.models.trained.pair_validation import TABLES, validate_pairs

    if arguments.fit is not None or arguments.only:
        raise UsageError("--pairs judges the one model of redis on one folder", "Leave out --fit and --only.")
    on = arguments.on if arguments.on is not None else default_folder()
    times = arguments.hold_out or _TIMES
    scores = validate_pairs(read_tables(on, TABLES).frames, times, partial(_tell, arguments, "pairs of redis"))
    if arguments.json:
        print_json({"judged_on": str(on), "confidence": 0.9, "scores": [score.to_dict() for score in scores]})
        return 0
    rows: list[tuple[str, ...]] = [("redis", "pairs", "by", "answered", "median", "p90", "90 % holds", "ends")]
    rows += [
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
    console = open_console()
    if arguments.markdown:
        for row in (rows[0], tuple("---" for _ in rows[0]), *rows[1:]):
            console.print("| " + " | ".join(row) + " |", markup=False, soft_wrap=True)
        return 0
    from rich.table import Table
    from rich.text import Text

    for part in dict.fromkeys(score.part for score in scores):
        for of in dict.fromkeys(score.of for score in scores):
            console.print(f"\nredis, {part}; pairs: {of}", style="bold", markup=False)
            table = Table(box=None, pad_edge=False, header_style="dim")
            for place, column in enumerate(rows[0][2:]):
                table.add_column(Text(column), justify="right" if place else "left")
            for row in rows[1:]:
                if row[:2] == (part, of):
                    table.add_row(*(Text(cell) for cell in row[2:]))
            console.print(table)
    console.print("\nErrors are |predicted / measured - 1| of ratios. 'ends': upper end / lower end, median.")
    return 0


def _tell(arguments: argparse.Namespace, name: str, what: str) -> None:
    if not arguments.json:
        complain(f"{name}: {what} ...")


def _print_tables(scores: list[Score]) -> None:
    """One table a model; errors above an aim are marked."""
    from rich.table import Table
    from rich.text import Text

    console = open_console()
    for name in dict.fromkeys(score.model for score in scores):
        mine = [score for score in scores if score.model == name]
        aims = [f"{word} {100 * aim:.0f} %" for word, aim in _aims(mine[0]) if aim is not None]
        console.print(f"\n{name}  (aims: {', '.join(aims)})", style="bold", markup=False)
        table = Table(box=None, pad_edge=False, header_style="dim")
        for column in ("left out", "CPU models", "predictions", "median", "p90", "90 % holds", "ends"):
            table.add_column(Text(column), justify="left" if column == "left out" else "right")
        for score in mine:
            split = score.split if score.what == "all" else f"  {score.what}"
            table.add_row(
                Text(split),
                str(score.processors),
                _predictions(score),
                Text(_marked(score.median_error, score.aim_median)),
                Text(_marked(score.p90_error, score.aim_p90)),
                f"{100 * score.coverage:.1f} %" if score.predictions else "-",
                f"x{score.interval_ratio:.2f}" if score.predictions else "-",
            )
        console.print(table)
    console.print(
        "\nErrors are |predicted / measured - 1|; '!' is above its aim. 'ends': upper end / lower end, median."
    )
    if any(score.refused for score in scores):
        console.print(
            "'refused': far outside of what was fitted, or an interval over a factor of 20: a user gets no number."
        )


def _aims(score: Score) -> tuple[tuple[str, float | None], ...]:
    return (("median", score.aim_median), ("p90", score.aim_p90))


def _predictions(score: Score) -> str:
    return f"{score.predictions}" + (f" + {score.refused} refused" if score.refused else "")


def _marked(error: float, aim: float | None) -> str:
    if math.isnan(error):
        return "-"
    return f"{'! ' if aim is not None and error > aim else ''}{100 * error:.1f} %"


def _print_markdown(scores: list[Score]) -> None:
    """The table as Markdown, so that it can be put into a page as it is."""
    rows: list[tuple[str, ...]] = [
        ("model", "left out", "of", "predictions", "CPU models", "median error", "p90 error", "90 % interval holds")
    ]
    rows.append(tuple("---" for _ in rows[0]))
    rows += [
        (
            score.model,
            score.split,
            score.what,
            _predictions(score),
            f"{score.processors}" + (f" ({score.processors_seen} seen)" if score.processors_seen else ""),
            _beside(score.median_error, score.aim_median),
            _beside(score.p90_error, score.aim_p90),
            f"{100 * score.coverage:.1f} %, x{score.interval_ratio:.2f}" if score.predictions else "-",
        )
        for score in scores
    ]
    console = open_console()
    for row in rows:
        console.print("| " + " | ".join(row) + " |", markup=False, soft_wrap=True)


def _print_notes(left_out: dict[str, int]) -> None:
    console = open_console()
    for name, count in left_out.items():
        if count:
            console.print(f"{name}: {count} rows lack something that is needed.", markup=False)
    for what in _NO_TABLE:
        console.print(f"Not judged: {what}.", markup=False)


def _beside(error: float, aim: float | None) -> str:
    """An error and its aim, in percent; what misses it is marked."""
    if math.isnan(error):
        return "-"
    if aim is None:
        return f"{100 * error:.1f} %"
    return f"{100 * error:.1f} % ({'aim' if error <= aim else 'misses'} {100 * aim:.0f} %)"
