"""From a run directory to the one file: reads, asks the analysis, fills the templates."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from rackscope.errors import RunDirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    import jinja2

    from rackscope.models.modelled_power import ServerWatts
    from rackscope.runs.directory import RunDirectory

REPORT_NAME = "report.html"


def render(run: RunDirectory, server: ServerWatts | None = None, share: float | None = None) -> str:
    """The report as one HTML document that fetches nothing. Raises RunDirectoryError where a table is damaged."""
    from rackscope.report.page import page_of

    page = page_of(run, server, share)
    return environment().get_template("report.html").render(
        page=page, title=page["title"], version=run.manifest.rackscope_version,
        style=asset("report.css") + asset("chart.css"), script=asset("report.js"),
    )  # fmt: skip


def write_report(
    run: RunDirectory, out: Path | None = None, server: ServerWatts | None = None, share: float | None = None
) -> Path:
    """Write the report to ``out``, or as ``report.html`` into the run directory; an old one stays until then."""
    return write_page(
        out if out is not None else run.path / REPORT_NAME,
        lambda: render(run, server, share),
        "The run itself is kept. Name another place with 'rackscope report RUN --out FILE'.",
    )


def write_page(target: Path, render: Callable[[], str], advice: str) -> Path:
    """Write what ``render`` returns to ``target``, which keeps its old content until then. Raises RunDirectoryError."""
    if not target.name or target.is_dir():
        raise RunDirectoryError(f"cannot write {target}: it is a folder", "Name a file with --out.")
    content = render().encode("utf-8", errors="replace")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise RunDirectoryError(f"cannot write {target}: {error.strerror or error}", advice) from error
    return target


def asset(name: str) -> str:
    return (resources.files("rackscope.report") / "assets" / name).read_text(encoding="utf-8")


def environment() -> jinja2.Environment:
    """Templates and filters; everything is escaped that is not marked safe."""
    import jinja2

    from rackscope.report.configuration import list_metric_names
    from rackscope.report.intensity import describe_use
    from rackscope.report.quantities import as_sentence, format_cell, format_clock, format_quantity

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("rackscope.report"),
        # Names and log lines come from programs under test: whatever is not marked safe here is escaped.
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "cell": format_cell,
        "quantity": format_quantity,
        "clock": format_clock,
        "sentence": as_sentence,
        "use": describe_use,
        "metric_names": list_metric_names,
    }
    return templates
