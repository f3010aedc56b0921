"""Fits the models to tables and writes what the package carries: ``rackscope models fit``."""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from rackscope.cli.model_tables import Tables, default_folder, read_tables
from rackscope.cli.output import complain, print_json
from rackscope.models.trained import list_models
from rackscope.models.trained.cloud_servers import SERVERS
from rackscope.models.trained.conformal import Calibration
from rackscope.models.trained.fit import Ends
from rackscope.models.trained.model import Model
from rackscope.models.trained.redis_elsewhere import FEATURES, fit_calibrated, fit_redis_elsewhere
from rackscope.models.trained.redis_throughput import PARTS
from rackscope.models.trained.refusals import seen_range
from rackscope.models.trained.shipped import (
    FORMAT,
    REDIS_ELSEWHERE,
    Errors,
    ShippedFit,
    Source,
    cost_of,
    errors_of,
    to_records,
)
from rackscope.models.trained.support_points import without_rows
from rackscope.models.trained.validation import leave_quarters_out
from rackscope.runs.files import write_atomically

#: Start of a table's name: where it is published, and what its licence says of what is made from it.
_PUBLISHED = {
    "sparecores": (
        "https://github.com/SpareCores/sc-inspector-data",
        "fitted on data of Spare Cores, CC BY-SA 4.0; these numbers are under the same licence",
    ),
    "specpower": (
        "https://www.spec.org/power_ssj2008/results/, as collected in cloud-carbon-footprint/ccf-coefficients",
        "fitted on results published by SPEC (SPECpower_ssj2008, fair use), collected under Apache-2.0",
    ),
}


def fit_models(arguments: argparse.Namespace) -> int:
    folder = arguments.tables if arguments.tables is not None else default_folder()
    models = list_models()
    tables = read_tables(folder, tuple(sorted({table for model in models for table in model.tables})))
    chosen = {model.name: model for model in models} | {REDIS_ELSEWHERE: None}
    written = []
    for name, model in chosen.items():
        if arguments.only and name not in arguments.only:
            continue
        complain(f"fitting {name} ...")
        found = _redis_elsewhere(tables) if model is None else _fitted(model, tables)
        kept = _kept(name, found, tables, (SERVERS,) if model is None else model.tables)
        path = arguments.out / f"{name}.json"
        arguments.out.mkdir(parents=True, exist_ok=True)
        write_atomically(path, f"{_text(kept)}\n".encode())
        written.append(
            {"path": str(path), **kept.model_dump(include={"model", "rows", "processors", "errors", "cost"})}
        )
        if not arguments.json:
            print(f"{path}: {path.stat().st_size / 1024:.0f} KB, {_errors(kept)}")
    if arguments.json:
        print_json({"fits": written})
    return 0


def _fitted(model: Model, tables: Tables) -> dict[str, Any]:

    examples = model.examples(tables.of(model))
    full = model.fit(examples, None)
    shipped = without_rows(model, examples, full)
    judged = replace(model, fit=lambda rest, _: without_rows(model, rest, model.fit(rest, None)))
    regressions, ends = to_records(shipped.regressions, shipped.ends)
    lowest, highest = seen_range(examples.features)
    return {
        "rows": len(examples),
        "processors": len(np.unique(examples.groups)),
        "errors": errors_of(leave_quarters_out(judged, examples)),
        "cost": cost_of(shipped.predict(examples).estimate, full.predict(examples).estimate),
        "features": list(examples.columns),
        "lowest": lowest,
        "highest": highest,
        "regressions": regressions,
        "ends": ends,
    }


def _redis_elsewhere(tables: Tables) -> dict[str, Any]:

    model = fit_redis_elsewhere(tables.frames)
    servers = model.servers
    assert servers is not None
    complete = np.isfinite(servers.features).all(axis=1)
    fits = {part: fit_calibrated(servers, part, with_rows=False) for part in PARTS}
    whole = {part: fit_calibrated(servers, part) for part in PARTS}
    shipped, full = (
        np.exp([one.regression.predict(servers.features[complete])[0] for one in some.values()])
        for some in (fits, whole)
    )
    regressions, ends = to_records(
        {part: one.regression for part, one in fits.items()},
        {part: Ends(Calibration(-one.quantile, one.quantile, one.left_out.processors)) for part, one in fits.items()},
    )
    return {
        "rows": int(complete.sum()),
        "processors": len(np.unique(servers.groups[complete])),
        "errors": [
            Errors(
                of=f"ratios, {part}",
                predictions=one.left_out.pairs,
                refused=0,
                median_error=one.left_out.median_error,
                p90_error=one.left_out.p90_error,
                coverage=None,
            )
            for part, one in fits.items()
        ],
        "cost": cost_of(shipped, full),
        "features": list(FEATURES),
        "lowest": model.lowest,
        "highest": model.highest,
        "regressions": regressions,
        "ends": ends,
        "pairs": {part: one.left_out for part, one in fits.items()},
    }


def _kept(name: str, found: dict[str, Any], tables: Tables, needed: tuple[str, ...]) -> ShippedFit:
    from rackscope import __version__

    sources = []
    for table in needed:
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in tables.files[table])).hexdigest()
        published, licence = _PUBLISHED[table.split("-", maxsplit=1)[0]]
        rows = len(tables.frames[table])
        sources.append(Source(table=table, rows=rows, sha256=digest, published=published, licence=licence))
    return ShippedFit(
        format=FORMAT,
        model=name,
        made=datetime.now(UTC).date().isoformat(),
        made_by=f"rackscope {__version__} models fit",
        sources=sources,
        **found,
    )


def _text(kept: ShippedFit) -> str:
    """JSON with a line for each entry, and one for each made-up server: short, and differences can be read."""
    values = kept.model_dump(mode="json")
    lines = [f'"{key}": {json.dumps(value)}' for key, value in values.items() if key != "regressions"]
    parts = []
    for name, one in values["regressions"].items():
        servers = ",\n".join(json.dumps(row, separators=(",", ":")) for row in one.pop("servers"))
        rest = json.dumps(one, separators=(",", ":"))
        parts.append(f'{json.dumps(name)}: {rest[:-1]},"servers":[\n{servers}\n]}}')
    return "{\n" + ",\n".join([*lines, '"regressions": {\n' + ",\n".join(parts) + "\n}"]) + "\n}"


def _errors(kept: ShippedFit) -> str:
    one = kept.errors[0]
    if one.median_error is None or one.p90_error is None:
        return "errors are not known"
    held = "" if one.coverage is None else f", intervals hold {100 * one.coverage:.0f} %"
    return f"median error {100 * one.median_error:.1f} %, p90 {100 * one.p90_error:.0f} %{held}"
