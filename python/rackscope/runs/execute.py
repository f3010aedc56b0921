"""One run from start to finish: load, warm up, and repeat the measured stages until their intervals are tight."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from rackscope.errors import UsageError
from rackscope.runs.files import cannot_make
from rackscope.runs.options import ProgressCallback
from rackscope.runs.prepare import Prepared
from rackscope.runs.repetition import Repetition
from rackscope.runs.session import Session
from rackscope.squeezes.base import Isolation


class Execution:
    """One run under way; ``run`` does it, ``path`` is where it is kept."""

    def __init__(self, prepared: Prepared, progress: ProgressCallback, isolation: Isolation | None = None) -> None:
        options = prepared.options
        folder = options.out or new_folder(f"{options.system}-{options.workload}")
        self._session = Session(prepared, progress, folder, isolation)
        self._repetition = Repetition(options)

    @property
    def path(self) -> Path:
        return self._session.writer.path

    def run(self) -> None:
        """Do everything, and close the directory however it ends; a second Ctrl-C does not cut that short."""
        self._session.run(self._phases, self._describe)

    def _phases(self, session: Session) -> None:
        options = session.prepared.options
        loop = options.loop
        session.rest()
        session.preload()
        session.warm_up(loop)
        while not self._repetition.is_over():
            number = self._repetition.begin()
            for stage in session.prepared.plan.stages:
                activity = self._repetition.activity(stage, number)
                row = session.phase(stage, loop, options.duration_seconds, number, activity=activity)
                self._repetition.add(stage.name, row["throughput_operations_per_second"], row["duration_seconds"])
            self._describe(session)

    def _describe(self, session: Session) -> None:
        self._repetition.describe(session.manifest.repetition)


def new_folder(name: str) -> Path:
    """A new folder under ``runs/``, named for this moment and ``name``. Raises UsageError or RunDirectoryError."""
    stem = f"{datetime.now():%Y-%m-%dT%H-%M-%S}-{name}"
    for suffix in ("", *(f"-{number}" for number in range(2, 1000))):
        folder = Path("runs") / f"{stem}{suffix}"
        try:
            # Made here, so that two runs that start in the same second do not share it.
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise cannot_make(folder, error) from error
        return folder
    raise UsageError(f"runs/{stem} exists a thousand times", "Choose a folder with --out.")
