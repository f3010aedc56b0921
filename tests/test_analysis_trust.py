"""What makes a run less believable is said, and nothing else is."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from analysis_frames import SyntheticRun, two_cores
from rackscope.analysis.characterisation import characterise
from rackscope.analysis.facts import SamplerCost
from rackscope.analysis.findings import TrustWarning


def warnings(run: SyntheticRun, **facts: Any) -> dict[str, TrustWarning]:
    found = characterise(run.run_facts(**facts), run.samples(), run.results(), pl.DataFrame())
    return {warning.code: warning for warning in found.warnings}


def test_a_good_run_has_no_warnings() -> None:
    assert warnings(SyntheticRun()) == {}


@pytest.mark.parametrize(
    ("result", "code", "severity", "words"),
    [
        ({"wrong_values": 3}, "wrong_values", "wrong", "were not what had been written"),
        ({"misses": 5000}, "misses", "doubt", "evicted"),
        ({"misses": 200_000, "hits": 1}, "misses", "wrong", "answers 'not found'."),
        ({"errors": 500}, "errors", "doubt", "failed"),
        ({"errors": 900_000, "operations": 100_000}, "errors", "wrong", "failed (90 %)"),
        ({"errors": 1}, "errors", "note", "failed"),
        ({"errors": 5, "operations": 0}, "errors", "wrong", "failed (100 %)"),
        ({"generator_idle_ratio": 0.01}, "generator_limit", "wrong", "load generator was the limit"),
    ],
)
def test_results_that_are_not_what_they_seem(result: dict[str, Any], code: str, severity: str, words: str) -> None:
    found = warnings(SyntheticRun(result=result))
    assert set(found) == {code}
    assert found[code].severity == severity
    assert words in found[code].sentence
    assert found[code].evidence


def test_misses_are_no_fault_where_nothing_was_loaded() -> None:
    assert warnings(SyntheticRun(result={"misses": 5000}), expects_hits=False) == {}


def test_few_misses_are_none() -> None:
    assert warnings(SyntheticRun(result={"misses": 5})) == {}


def open_loop(**result: Any) -> dict[str, TrustWarning]:
    run = SyntheticRun(result={"offered_operations_per_second": 20_000.0, **result})
    return warnings(run, loop="open", offered_operations_per_second=20_000.0)


def test_a_lagging_generator() -> None:
    assert open_loop() == {}
    late = open_loop(lag_p99_seconds=0.004)
    assert set(late) == {"generator_lag"}
    assert "4.00 ms late" in late["generator_lag"].sentence
    part = open_loop(lag_p99_seconds=0.0005, response_p99_seconds=0.002)
    assert "25 % of the response time" in part["generator_lag"].sentence
    assert open_loop(lag_p99_seconds=0.0001, response_p99_seconds=0.002) == {}


def test_a_closed_loop_has_no_lag() -> None:
    assert warnings(SyntheticRun(result={"lag_p99_seconds": 0.1})) == {}


def test_an_offered_rate_that_was_not_met_is_not_the_generators_lag() -> None:
    run = SyntheticRun(result={"offered_operations_per_second": 40_000.0, "lag_p99_seconds": 1.0})
    found = warnings(run, loop="open", offered_operations_per_second=40_000.0)
    assert set(found) == {"offered_not_met"}
    assert "40.0 k operations/s and did 20.0 k" in found["offered_not_met"].sentence


def test_too_few_repetitions() -> None:
    phases: list[tuple[str, str, int | None, float]] = [("measure", "measure", 1, 5.0)]
    once = warnings(SyntheticRun(phases=phases))
    assert set(once) == {"too_few_repetitions"}
    assert "measured once" in once["too_few_repetitions"].sentence


def test_an_interval_wider_than_asked() -> None:
    found = warnings(SyntheticRun(throughputs=[20_000.0, 22_000.0, 18_000.0]))
    assert set(found) == {"wide_interval"}
    assert "±2.0 % was wanted" in found["wide_interval"].sentence
    assert warnings(SyntheticRun(throughputs=[20_000.0, 22_000.0, 18_000.0]), wanted_half_width=0.5) == {}


def test_a_repetition_far_from_the_others() -> None:
    phases: list[tuple[str, str, int | None, float]] = [("measure", "measure", number, 2.0) for number in range(1, 8)]
    values = [20_000.0, 20_010.0, 19_990.0, 20_005.0, 19_995.0, 20_002.0, 15_000.0]
    found = warnings(SyntheticRun(phases=phases, throughputs=values))
    assert "repetition 7 of 7" in found["outliers"].sentence


def test_steal_and_its_line() -> None:
    noisy = two_cores({"user": 0.1, "steal": 0.05}, {"user": 0.2, "steal": 0.05})
    run = SyntheticRun()
    run.rates |= noisy
    found = warnings(run)
    assert set(found) == {"steal"}
    assert "5.0 %" in found["steal"].sentence
    run.rates |= two_cores({"user": 0.1, "steal": 0.01}, {"user": 0.2, "steal": 0.01})
    assert warnings(run) == {}


def test_other_programs_on_the_host() -> None:
    run = SyntheticRun()
    run.rates |= two_cores({"user": 0.1}, {"user": 0.9})
    found = warnings(run)
    assert set(found) == {"interference"}
    # 1.00 core in all, less the system's 0.10, the generator's 0.15 and the sampler's 0.005.
    assert found["interference"].evidence[0].value == pytest.approx(0.745, abs=0.01)


def test_interrupts_are_not_other_programs() -> None:
    run = SyntheticRun()
    run.rates |= two_cores({"user": 0.1, "softirq": 0.5}, {"user": 0.15, "irq": 0.3})
    assert warnings(run) == {}


def test_a_sampler_that_misses_or_costs() -> None:
    missed = warnings(SyntheticRun(), sampler=SamplerCost(0.01, 1880, 20, 0.1, 19.0))
    assert set(missed) == {"missed_ticks"}
    assert "20 of 1900" in missed["missed_ticks"].sentence
    costly = warnings(SyntheticRun(), sampler=SamplerCost(0.01, 1900, 0, 1.9, 19.0))
    assert set(costly) == {"sampler_cost"}
    assert warnings(SyntheticRun(), sampler=None) == {}


def test_multiplexed_counters() -> None:
    run = SyntheticRun()
    run.levels = run.levels | {'perf_running_ratio{scope="host"}': 0.7}
    found = warnings(run)
    assert set(found) == {"multiplexed"}
    assert "70 %" in found["multiplexed"].sentence


def test_shared_and_unpinned_cores() -> None:
    assert "shared core 0" in warnings(SyntheticRun(), client_cores=(0,))["shared_cores"].sentence
    assert "not kept on different cores" in warnings(SyntheticRun(), system_cores=())["shared_cores"].sentence


def test_throughput_that_still_changes() -> None:
    run = SyntheticRun()
    phase_seconds = 5.0

    def frame(shape: float) -> pl.DataFrame:
        table = run.samples()
        seconds = (table["timestamp_ns"] - run.windows()[2].start_ns) / 1e9
        inside = (seconds % phase_seconds) / phase_seconds
        return table.with_columns((1000.0 * (1 + shape * inside)).alias("load_throughput_operations_per_second"))

    def codes(shape: float) -> dict[str, str]:
        found = characterise(run.run_facts(), frame(shape), run.results(), pl.DataFrame())
        return {warning.code: warning.sentence for warning in found.warnings}

    assert "still rose" in codes(0.5)["drift"]
    assert "still fell" in codes(-0.4)["drift"]
    assert codes(0.05) == {}


def test_a_phase_too_short_to_sample() -> None:
    phases: list[tuple[str, str, int | None, float]] = [("measure", "measure", number, 0.5) for number in (1, 2, 3)]
    assert "short_phase" in warnings(SyntheticRun(phases=phases))


def test_a_run_without_a_measured_phase() -> None:
    found = warnings(SyntheticRun(phases=[("load", "load", None, 2.0)]))
    assert set(found) == {"nothing_measured"}
    assert found["nothing_measured"].severity == "wrong"


def test_the_gravest_come_first() -> None:
    run = SyntheticRun(result={"wrong_values": 1, "errors": 1}, throughputs=[20_000.0, 22_000.0, 18_000.0])
    severities = [warning.severity for warning in warnings(run).values()]
    assert severities == ["wrong", "doubt", "note"]


def test_loading_and_warming_up_are_not_judged_for_steadiness() -> None:
    run = SyntheticRun(phases=[("load", "load", None, 0.5), *SyntheticRun().phases[2:]])
    assert warnings(run) == {}
