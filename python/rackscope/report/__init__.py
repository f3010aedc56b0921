"""One offline HTML file from a run directory: ``render`` returns it, ``write_report`` puts it beside the run."""

from rackscope.report.build import render, write_report

__all__ = ["render", "write_report"]
