"""Predicts one described server with every model that what is said of it suffices for: ``rackscope models predict``."""

from __future__ import annotations

import argparse
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rackscope.cli.model_tables import read_tables
from rackscope.cli.output import complain, open_console, print_json
from rackscope.errors import ModelError, UsageError
from rackscope.models.estimates import Prediction
from rackscope.models.trained import find_model, list_models
from rackscope.models.trained.ask import TrainedModel, train
from rackscope.models.trained.model import Model


def predict_server(arguments: argparse.Namespace) -> int:
    """Predict, and say which models did not; the status is 1 where one that was named did not, or none did."""
    server = _described(arguments.file, arguments.says)
    models = tuple(find_model(name) for name in dict.fromkeys(arguments.only)) or list_models()
    known = {one.name for model in models for one in model.inputs}
    if unknown := [name for name in server if name not in known]:
        raise UsageError(f"no model asks for '{unknown[0]}'", "'rackscope models list' has what each model needs.")
    found: dict[str, dict[str, Prediction]] = {}
    missing: dict[str, str] = {}
    for model in models:
        lacking = [one.name for one in model.inputs if not one.optional and one.name not in server]
        if lacking:
            missing[model.name] = f"needs {', '.join(lacking)}"
            continue
        asked = {one.name for one in model.inputs}
        try:
            trained = _trained(model, arguments.fit)
            found[model.name] = trained.predict({name: value for name, value in server.items() if name in asked})
        except ModelError as error:
            missing[model.name] = str(error)
    if arguments.json:
        _print_json(server, found, missing)
    else:
        _print(models, found, missing)
    return 1 if not found or (arguments.only and missing) else 0


def _trained(model: Model, folder: Path | None) -> TrainedModel:
    if folder is None:
        from rackscope.models.trained.shipped import read_fit, restore

        return restore(read_fit(model.name))
    return train(model.name, read_tables(folder, model.tables).of(model))


def _described(file: Path | None, says: list[tuple[str, str]]) -> dict[str, Any]:
    """What the file and the command line say of the server; the command line goes first. Raises UsageError."""
    server: dict[str, Any] = {}
    if file is not None:
        try:
            server = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {file}: {error}", "Name a TOML file.") from None
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{file} is not TOML: {error}", "Fix the syntax there.") from None
    server |= {name: _value(text) for name, text in says}
    if not server:
        raise UsageError(
            "no server is described",
            "Write NAME=VALUE, such as chips=2, or --server FILE; 'rackscope models list' has the names.",
        )
    return server


def _value(text: str) -> Any:
    """A number, several numbers by name (``1:1500,8:9000``), or the text itself."""
    if ":" in text:
        pairs = [one.partition(":") for one in text.split(",")]
        numbers = {name.strip(): _number(value) for name, _, value in pairs}
        if None not in numbers.values():
            return numbers
    number = _number(text)
    return text if number is None else number


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _print(models: tuple[Model, ...], found: Mapping[str, Mapping[str, Prediction]], missing: dict[str, str]) -> None:
    console = open_console()
    for model in models:
        if model.name not in found:
            continue
        console.print(f"{model.name}: {model.predicted}", style="bold", markup=False)
        table = Table(box=None, pad_edge=False, show_header=False)
        for part, one in found[model.name].items():
            ends = f"90 % interval {_shown(one.low)} to {_shown(one.high)}"
            table.add_row(Text(part), Text(f"{_shown(one.value)} {one.unit}", justify="right"), Text(ends))
        console.print(Padding(table, (0, 0, 0, 2)))
        console.print(Padding(Text(next(iter(found[model.name].values())).basis, style="dim"), (0, 0, 1, 2)))
    for name, reason in missing.items():
        complain(f"{name} not predicted: {reason}")


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _print_json(server: dict[str, Any], found: Mapping[str, Mapping[str, Prediction]], missing: dict[str, str]) -> None:
    print_json(
        {
            "server": server,
            "predictions": [
                {"model": name, "what": part, **asdict(one)}
                for name, parts in found.items()
                for part, one in parts.items()
            ],
            "not_predicted": missing,
        }
    )
