"""Public measurements of real servers, which are not part of the project: beside the checkout, or where it is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_FOLDER = Path(os.environ.get("RACKSCOPE_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))


def public_table(name: str) -> Path:
    """The file of that name; a test that needs one is skipped where it is not."""
    file = _FOLDER / name
    if not file.is_file():
        pytest.skip(f"{file} is not there: set RACKSCOPE_DATA")
    return file
