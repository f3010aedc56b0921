"""Rackscope: what holds a workload back on a server, and how far it is from what the hardware could do.

For scripts and notebooks: ``read`` opens a run or study directory, ``run`` and ``study`` measure. See docs/python.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rackscope.api.run import Run
    from rackscope.api.running import run
    from rackscope.api.study import Study, read
    from rackscope.api.studying import study

__version__ = "0.1.0"
__all__ = ["Run", "Study", "__version__", "read", "run", "study"]

_MODULES = {"Run": "run", "Study": "study", "read": "study", "run": "running", "study": "studying"}


def __getattr__(name: str) -> Any:
    """Each name is imported when it is first used (PEP 562): ``import rackscope`` alone costs nothing."""
    if name not in _MODULES:
        raise AttributeError(f"module 'rackscope' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(f"rackscope.api.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
