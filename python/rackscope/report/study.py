"""From a study's record to its one file: findings, charts, tables, and how it was done. Any kind of study."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from rackscope.report.build import REPORT_NAME, asset, environment, write_page
from rackscope.report.study_page import study_page_of
from rackscope.runs.study import MEMBERS, StudyRecord, is_below, read_study

_ADVICE = "Nothing else was changed. Name another place with '--out FILE'."


def write_study_report(path: Path, out: Path | None = None) -> Path:
    """Write the report of the study in ``path``; where it was written. Raises RunDirectoryError."""
    record = read_study(path)
    target = out if out is not None else path / REPORT_NAME
    reports = {
        member.folder: report
        for member in record.members
        if is_below(member.folder) and (report := path / MEMBERS / member.folder / REPORT_NAME).is_file()
    }
    return write_study_page(record, target, reports)


def write_study_page(record: StudyRecord, target: Path, reports: Mapping[str, Path] | None = None) -> Path:
    """Write the page of ``record``, with the members' pages by folder. Raises RunDirectoryError."""
    links = {folder: _link(target, report) for folder, report in (reports or {}).items()}
    return write_page(target, lambda: render_study(record, links), _ADVICE)


def render_study(record: StudyRecord, links: Mapping[str, str] | None = None) -> str:
    """The page as one HTML document that fetches nothing and runs no script; ``links`` lead to members, by folder."""
    style = "".join(asset(name) for name in ("report.css", "chart.css", "study.css"))
    template = environment().get_template("study.html")
    page = study_page_of(record, links or {})
    return template.render(page=page, title=record.title, version=record.rackscope_version, style=style, script="")


def _link(target: Path, report: Path) -> str:
    """A relative link, which holds wherever the folder is moved to."""
    relative = os.path.relpath(report.absolute(), target.absolute().parent)
    # The dot keeps a folder called "javascript:x" from being taken for a scheme.
    return "./" + quote(os.fsencode(relative))
