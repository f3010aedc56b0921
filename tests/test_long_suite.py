"""What the long suite names exists: a name that fits nothing would pass, for want of a test that could fail."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


def test_every_model_for_loom_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    specification = importlib.util.spec_from_file_location("test_long", REPOSITORY / "tools/test_long.py")
    assert specification is not None and specification.loader is not None
    suite = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "test_long", suite)
    specification.loader.exec_module(suite)
    folder = REPOSITORY / "crates/mica/src/tests"
    models = {one.stem for one in folder.glob("*.rs") if "#[test]" in one.read_text(encoding="utf-8")}
    assert models == set(suite.MODELS)
