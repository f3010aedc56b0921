"""``study access`` through the command, with the real program: short, and about structure rather than speed."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import Rackscope, interrupt_study, process_exists, wait_until

SHORT = ("study", "access", "--items", "20k", "--cores", "1", "--window", "20ms", "--out", "study", "--json")


def programs_of(parent: int) -> list[int]:
    """Processes that measure for the command ``parent``."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = status.read_text().partition("(")[2].rpartition(")")[::2]
        except OSError:
            continue
        if name == "rackscope-acces" and int(fields.split()[1]) == parent:
            found.append(int(status.parent.name))
    return found


def test_every_mode_is_measured_in_every_mix(rackscope: Rackscope) -> None:
    done = rackscope(*SHORT, "--writes", "0,50", "--repetitions", "2", "--peers")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["status"] == "complete"
    cells = told["result"]["cells"]
    assert len(cells) == (3 + 2) * 2 * 2
    assert all(rate > 0 for cell in cells for rate in cell["rates_operations_per_second"])
    assert {len(cell["rates_operations_per_second"]) for cell in cells} == {2}
    stores = told["result"]["stores"]
    assert all(store["lost"] == 0 for store in stores)
    own = [store for store in stores if store["access"].isupper()]
    assert len({(store["partitions"], store["log_bytes"], store["index_bytes"]) for store in own}) == 1
    assert "round 2 of 2" in done.stderr
    folder = rackscope.folder / "study"
    assert (folder / "report.html").stat().st_size > 10_000
    assert not (folder / "access.log").exists()


def test_ctrl_c_keeps_what_there_is_and_ends_the_program(rackscope: Rackscope) -> None:
    running = rackscope.start(*SHORT, "--writes", "50", "--repetitions", "1000", "--budget", "1h")
    study = rackscope.folder / "study" / "study.json"
    programs: list[int] = []

    def measured() -> bool:
        programs[:] = programs_of(running.pid)
        return study.exists() and json.loads(study.read_text())["result"].get("rounds", 0) > 0

    interrupt_study(running, measured, "a round")
    assert programs
    kept = json.loads(study.read_text())
    assert kept["status"] == "interrupted"
    assert kept["charts"]
    assert (rackscope.folder / "study" / "report.html").exists()
    assert not any(map(process_exists, programs))


def test_the_program_ends_with_a_study_that_was_killed(rackscope: Rackscope) -> None:
    running = rackscope.start(*SHORT, "--writes", "50", "--repetitions", "1000", "--budget", "1h")
    try:
        wait_until(lambda: bool(programs_of(running.pid)), "the program")
        programs = programs_of(running.pid)
    finally:
        running.kill()
        running.communicate()
    wait_until(lambda: not any(map(process_exists, programs)), "the program to end")
