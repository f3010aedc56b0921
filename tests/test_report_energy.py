"""Power in the report and the terminal: shown where it is known, called modelled where it is, absent elsewhere."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from energy_runs import counter, gauge
from rackscope.cli import main
from rackscope.errors import RackscopeError
from rackscope.models.modelled_power import ServerWatts
from rackscope.models.uncertain import Uncertain
from rackscope.report import render
from rackscope.report.energy import assess
from rackscope.runs.directory import RunDirectory
from rackscope.runs.energy import performance_per_watt, performance_per_watt_chart, results_with_energy
from report_example import HOST, PROCESSOR, START_NS, Example, write_example
from report_html import Document

GUEST = {**HOST, "virtualisation": {"guest": True, "hypervisor": "KVM", "machine": None, "container": None}}
BARE = {
    **HOST,
    "virtualisation": {"guest": False, "hypervisor": None, "machine": None, "container": None},
    "processor": {**PROCESSOR, "sockets": 2, "physical_cores": 64},
}
SERVER = ServerWatts("R640", "its data sheet", Uncertain.certain(60.0), Uncertain.certain(460.0))
SHORT = Example(load_seconds=2.0, warm_up_seconds=2.0, repetition_seconds=2.0, repetitions=3)


def powered(meters: dict[str, tuple[float, float]]) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Meters of so many watts before the load, and so many more under it."""

    def edit(samples: pl.DataFrame) -> pl.DataFrame:
        seconds = ((samples["timestamp_ns"] - START_NS) / 1e9).to_numpy()
        of_host = samples["context_switches_total"].is_not_null().to_numpy()
        columns = []
        for name, (idle, dynamic) in meters.items():
            watts = idle + np.where(seconds > 1, dynamic, 0.0) * (1 + 0.01 * np.sin(7 * seconds))
            values = watts
            if name.startswith("energy"):
                steps = (watts[1:] + watts[:-1]) / 2 * np.diff(seconds)
                values = np.concatenate(([0.0], np.cumsum(steps)))
            columns.append(pl.Series(name, np.where(of_host, values, np.nan)).fill_nan(None))
        return samples.with_columns(columns)

    return edit


METERS = {gauge("server"): (80.0, 60.0), counter("package-0"): (20.0, 40.0), counter("core-0"): (5.0, 35.0)}


def example(**changes: Any) -> Example:
    return replace(SHORT, **changes)


@pytest.fixture(scope="module")
def metered(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return write_example(tmp_path_factory.mktemp("runs") / "metered", SHORT, edit_samples=powered(METERS))


def section(document: Document) -> str:
    return document.text.partition("Power and energy")[2].partition("Over time")[0]


def test_metered_power_has_a_table_and_a_panel(metered: RunDirectory) -> None:
    document = Document(render(metered))
    assert document.problems == []
    text = section(document)
    assert "measure 140 W" in text
    assert "metered by ipmi_dcmi" in text
    assert "core-0 rapl_perf" in text
    assert "modelled" not in text
    panel = document.panel("power")
    assert panel["unit"] == "watts"
    assert [one["label"] for one in panel["series"]] == [
        "server (ipmi_dcmi)",
        "package-0 (rapl_perf)",
        "core-0 (rapl_perf)",
    ]
    assert "energy" in document.identifiers
    assert "An operation takes 1.3" in document.text


def test_without_power_nothing_is_shown_and_nothing_is_broken(tmp_path: Path) -> None:
    for name, host in (("unknown", HOST), ("guest", GUEST)):
        document = Document(render(write_example(tmp_path / name, example(host=host))))
        assert document.problems == []
        assert "energy" not in document.identifiers
        assert not {panel["id"] for panel in document.data["panels"]} & {"power"}
        assert "odelled" not in document.text
        assert "Power" not in document.text


def test_bare_metal_without_a_meter_is_modelled_and_says_so_everywhere(tmp_path: Path) -> None:
    run = write_example(tmp_path / "run", example(host=BARE))
    document = Document(render(run))
    text = section(document)
    for heading in ("modelled mean power", "modelled energy of an operation", "modelled operations a joule"):
        assert heading in text
    assert "Power is modelled, not metered" in text
    assert "SPECpower results of its class" in text
    assert [one["label"] for one in document.panel("power")["series"]] == ["host (modelled)"]
    characterisation, power = assess(run)
    assert [one.severity for one in characterisation.warnings if one.code == "power_modelled"] == ["note"]
    measured = next(phase for phase in characterisation.phases if phase.kind == "measure")
    figures = {name for name in measured.figures if "watts" in name or "joule" in name}
    assert figures == {
        "modelled_mean_watts",
        "modelled_energy_joules_per_operation",
        "modelled_operations_per_joule",
    }
    assert power.modelled is not None and power.modelled.model.server.is_class


def test_a_guest_is_modelled_by_its_share_only(tmp_path: Path) -> None:
    run = write_example(tmp_path / "run", example(host=GUEST))
    refused = assess(run, SERVER)[0]
    [warning] = [one for one in refused.warnings if one.code == "power_not_modelled"]
    assert "cannot be modelled from within" in warning.sentence
    modelled = assess(run, SERVER, 0.125)[1].modelled
    assert modelled is not None
    phase = modelled.phase("measure")
    assert phase is not None and 60 / 8 < phase.modelled_mean_watts.value < 460 / 8


def test_the_manifest_remembers_the_server(tmp_path: Path) -> None:
    from rackscope.runs.manifest import AmountPart, Manifest, ServerPart

    def tell(manifest: Manifest) -> None:
        idle, full = (AmountPart(shape="certain", low=one, middle=one, high=one) for one in (60.0, 460.0))
        manifest.server = ServerPart(name="R640", idle_watts=idle, full_watts=full, share=0.5)

    run = write_example(tmp_path / "run", example(host=GUEST), edit_manifest=tell)
    modelled = assess(run)[1].modelled
    assert modelled is not None
    assert modelled.model.server.share == 0.5


def test_what_is_metered_is_not_modelled(tmp_path: Path) -> None:
    run = write_example(tmp_path / "run", example(host=BARE), edit_samples=powered(METERS))
    characterisation, power = assess(run, SERVER)
    assert power.modelled is None
    assert any(one.sentence == "Power was not modelled: it was metered." for one in characterisation.warnings)


def test_where_only_parts_are_metered_the_host_is_modelled_beside_them(tmp_path: Path) -> None:
    run = write_example(tmp_path / "run", example(host=BARE), edit_samples=powered({counter("dram-0"): (3.0, 5.0)}))
    document = Document(render(run))
    assert document.problems == []
    text = section(document)
    assert "No domain that was metered speaks for the host as a whole" in text
    assert "modelled mean power" in text and "dram-0 rapl_perf" in text
    labels = [one["label"] for one in document.panel("power")["series"]]
    assert labels == ["dram-0 (rapl_perf)", "host (modelled)"]
    assert "as modelled from the CPU's use" in document.text


def test_broken_meters_are_named_at_the_top(tmp_path: Path) -> None:
    meters = {gauge("server"): (-80.0, 0.0), counter("package-0"): (20.0, 40.0)}
    document = Document(render(write_example(tmp_path / "run", SHORT, edit_samples=powered(meters))))
    assert "Server by ipmi_dcmi read -80 W" in document.text.partition("What was found")[0]
    assert "those of package-0, metered by rapl_perf; it leaves out DRAM" in section(document)


def test_performance_per_watt_over_runs_at_two_rates(metered: RunDirectory, tmp_path: Path) -> None:
    def half(results: pl.DataFrame) -> pl.DataFrame:
        return results.with_columns(pl.col("operations") // 2, pl.col("throughput_operations_per_second") / 2)

    slower = {name: (idle, dynamic / 2) for name, (idle, dynamic) in METERS.items()}
    other = write_example(tmp_path / "half", SHORT, edit_samples=powered(slower), edit_results=half)
    frame = performance_per_watt([metered, other])
    assert frame["load_ratio"].to_list() == pytest.approx([0.5, 1.0], rel=0.01)
    assert frame["mean_watts"].to_list() == pytest.approx([110.0, 140.0], rel=0.01)
    assert performance_per_watt_chart(frame, "load_ratio").series[0].x == frame["load_ratio"].to_list()
    plain = write_example(tmp_path / "plain", SHORT)
    assert performance_per_watt([metered, plain]).height == 1
    with pytest.raises(RackscopeError, match="no metered power"):
        performance_per_watt([plain])
    assert results_with_energy(plain)[1] is None


@dataclass(frozen=True)
class Ended:
    returncode: int
    stdout: str
    stderr: str


def rackscope(*arguments: str | Path) -> Ended:
    """In this process: a new one would spend its seconds on imports."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*map(str, arguments)])
    return Ended(status, out.getvalue(), err.getvalue())


def test_the_terminal_and_json_carry_the_same(metered: RunDirectory) -> None:
    shown = rackscope("report", metered.path)
    assert shown.returncode == 0, shown.stderr
    assert "140 W" in shown.stdout
    content = json.loads(rackscope("report", metered.path, "--json").stdout)
    phase = next(one for one in content["energy"]["phases"] if one["kind"] == "measure")
    assert phase["host"]["mean_watts"]["estimate"] == pytest.approx(140.0, rel=0.01)
    row = next(one for one in content["results"] if one["kind"] == "measure")
    assert row["energy_joules_per_operation"] == pytest.approx(row["energy_joules"] / row["operations"])


def test_compare_has_operations_a_joule(metered: RunDirectory, tmp_path: Path) -> None:
    thrifty = {name: (idle, dynamic / 2) for name, (idle, dynamic) in METERS.items()}
    other = write_example(tmp_path / "other", SHORT, edit_samples=powered(thrifty))
    content = json.loads(rackscope("compare", metered.path, other.path, "--json").stdout)
    row = next(one for one in content["rows"] if one["metric"] == "operations_per_joule")
    assert row["ratio"]["estimate"] == pytest.approx(140 / 110, rel=0.01)
    assert row["b_is_better"] is True


def test_a_server_file_that_is_wrong_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text("[server]\nidle_watts = 80\n")
    refused = rackscope("report", tmp_path, "--server", file)
    assert refused.returncode == 2
    assert "full_watts is missing" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
