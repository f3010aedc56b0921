"""Ctrl-C and its kind, kept waiting while something must not be cut in half."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruptions:
    """Holds back the signals that end rackscope, where they arrive: on the main thread; ``allowed`` lets them act."""

    def __init__(self) -> None:
        self._handlers: dict[signal.Signals, Any] = {}
        self._waiting: list[int] = []

    @contextlib.contextmanager
    def allowed(self) -> Iterator[None]:
        """Signals act at once within, those that waited first of all."""
        self._release()
        try:
            self.deliver()
            yield
        finally:
            self._hold()

    def deliver(self) -> None:
        """Send again the first signal that was held back, if there was one. Raises what its handler raises."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            signal.raise_signal(waiting[0])

    def _hold(self) -> None:
        if threading.current_thread() is threading.main_thread():
            # What is ignored (nohup) stays ignored.
            acting = [number for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN]
            self._handlers = {number: signal.signal(number, self._remember) for number in acting}

    def _release(self) -> None:
        handlers, self._handlers = self._handlers, {}
        for number, handler in handlers.items():
            # None: it was set by something that is not Python, and cannot be put back from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _remember(self, number: int, _frame: FrameType | None) -> None:
        self._waiting.append(number)


@contextlib.contextmanager
def held_back() -> Iterator[Interruptions]:
    """Within, Ctrl-C, SIGTERM and SIGHUP wait: they act at a normal end, and are forgotten at an exception's."""
    interruptions = Interruptions()
    interruptions._hold()
    try:
        yield interruptions
    finally:
        interruptions._release()
    interruptions.deliver()
