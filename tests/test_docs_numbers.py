"""Numbers in the docs are those of thresholds.toml."""

from __future__ import annotations

import runpy
import subprocess
import sys

import pytest

from conftest import REPOSITORY
from rackscope.errors import RackscopeError

TOOL = REPOSITORY / "tools/docs_numbers.py"


def test_the_docs_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, TOOL, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_number_keeps_its_form_and_an_unknown_name_is_refused() -> None:
    filled = runpy.run_path(str(TOOL))["filled"]
    marked = "at <!-- threshold: slack.tolerance -->{}<!-- /threshold -->."
    assert filled(marked.format("9 %")) == marked.format("2 %")
    assert filled(marked.format("9")) == marked.format("0.02")
    with pytest.raises(RackscopeError, match=r"no \[limit\] no.such"):
        filled("<!-- threshold: no.such -->1<!-- /threshold -->")
