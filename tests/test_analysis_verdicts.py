"""Verdicts on runs whose limit is known."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis_frames import (
    SyntheticRun,
    all_cores,
    core,
    disk,
    histogram_of,
    network,
    only_in,
    process,
    quiet_ceilings,
    two_cores,
)
from rackscope.analysis.characterisation import characterise
from rackscope.analysis.facts import ProbeReport
from rackscope.analysis.findings import Characterisation, PhaseCharacterisation, ResourceAssessment


def judge(run: SyntheticRun, **facts: Any) -> Characterisation:
    return characterise(run.run_facts(**facts), run.samples(), run.results(), pl.DataFrame())


def phase(found: Characterisation, name: str = "measure") -> PhaseCharacterisation:
    return next(one for one in found.phases if one.phase == name)


def resource(found: Characterisation, name: str, instance: str | None = None) -> ResourceAssessment:
    return next(one for one in phase(found).resources if one.resource == name and instance in (None, one.instance))


def with_rates(*parts: dict[str, Any], **options: Any) -> SyntheticRun:
    run = SyntheticRun(**options)
    for part in parts:
        run.rates |= part
    return run


CPU_BOUND = two_cores(
    {"user": only_in("measure", 0.13, 0.1), "system": only_in("measure", 0.60, 0.2), "softirq": 0.26},
    {"user": 0.2, "system": 0.3},
)


def test_a_full_core_is_named_with_the_kernels_share_and_the_seconds() -> None:
    found = judge(with_rates(CPU_BOUND))
    verdict = phase(found).verdict
    assert verdict.kind == "limited"
    assert verdict.resources == ("cpu_system",)
    assert verdict.sentence.startswith(
        "memcached's core was busy 99 % of the time (87 % of that in the kernel): CPU limits throughput in 'measure'. "
        "[cpu_core_seconds_total core 0, 4.0-19.0 s in 3 parts]"
    )
    assert found.findings[0].sentence == verdict.sentence
    assert resource(found, "cpu_system").intensity == pytest.approx(0.99, abs=0.005)
    assert resource(found, "disk").status == "spare"


def test_only_the_phase_that_is_full_is_said_to_be() -> None:
    found = judge(with_rates(CPU_BOUND))
    assert [one.verdict.kind for one in found.phases] == ["none_near", "none_near", "limited"]
    assert [one.repetitions for one in found.phases] == [1, 1, 3]


def test_a_core_that_other_programs_kept_busy_is_told_from_one_that_the_system_did() -> None:
    crowded = judge(with_rates(CPU_BOUND, process(user=0.05, system=0.05)))
    assert "Only 10 % of that was memcached itself" in phase(crowded).verdict.sentence
    assert "Stop what else runs" in phase(crowded).verdict.advice
    assert "itself" not in phase(judge(with_rates(CPU_BOUND, process(user=0.13, system=0.60)))).verdict.sentence


def test_arrivals_at_random_that_were_few_are_no_shortfall() -> None:
    for reached, met in ((4.0, True), (0.5, False)):
        result = {"offered_operations_per_second": 5.0, "throughput_operations_per_second": reached}
        found = judge(SyntheticRun(result=result), loop="open", offered_operations_per_second=5.0)
        assert ("offered_not_met" not in {warning.code for warning in found.warnings}) is met


def test_a_quiet_host_has_no_limit() -> None:
    found = judge(SyntheticRun())
    verdict = phase(found).verdict
    assert verdict.kind == "none_near"
    assert verdict.resources == ()
    assert "No measured resource is at its limit" in verdict.sentence
    assert {one.status for one in phase(found).resources} == {"spare", "unknown"}
    assert found.warnings == ()


def test_a_closed_loop_of_one_connection_is_asked_for_more() -> None:
    verdict = phase(judge(SyntheticRun(), connections=1)).verdict
    assert "1 outstanding" in verdict.sentence
    assert "--connections" in verdict.advice


def test_an_offered_rate_that_was_met_limits_nothing() -> None:
    run = SyntheticRun(result={"offered_operations_per_second": 20_000.0})
    verdict = phase(judge(run, loop="open", offered_operations_per_second=20_000.0)).verdict
    assert verdict.kind == "none_near"
    assert "the offered rate was met" in verdict.sentence


def test_an_offered_rate_that_a_full_core_could_not_meet() -> None:
    run = with_rates(CPU_BOUND, result={"offered_operations_per_second": 40_000.0})
    found = judge(run, loop="open", offered_operations_per_second=40_000.0)
    assert "CPU kept 'measure' from the offered rate" in phase(found).verdict.sentence
    assert "offered_not_met" in {warning.code for warning in found.warnings}


def test_an_offered_rate_missed_with_nothing_full_is_not_explained_away() -> None:
    run = SyntheticRun(result={"offered_operations_per_second": 40_000.0})
    verdict = phase(judge(run, loop="open", offered_operations_per_second=40_000.0)).verdict
    assert verdict.kind == "none_near"
    assert "not met" in verdict.sentence


def test_a_full_generator_forbids_a_verdict_on_the_system() -> None:
    run = with_rates(
        two_cores({"user": 0.1, "system": 0.4}, {"user": 0.5, "system": 0.49}), result={"generator_idle_ratio": 0.01}
    )
    found = judge(run)
    verdict = phase(found).verdict
    assert verdict.kind == "generator"
    assert verdict.resources == ()
    assert "No verdict on memcached" in verdict.sentence
    assert found.warnings[0].code == "generator_limit"
    assert found.warnings[0].severity == "wrong"
    assert found.findings[0].sentence == verdict.sentence


def test_a_full_generator_beside_a_full_system_is_a_doubt_only() -> None:
    found = judge(with_rates(CPU_BOUND, result={"generator_idle_ratio": 0.02}))
    assert phase(found).verdict.resources == ("cpu_system",)
    assert "generator was nearly saturated" in phase(found).verdict.sentence
    assert {warning.code for warning in found.warnings} >= {"generator_full"}


DISK_BOUND = disk(read_bytes=390e6, reads=3000.0, read_seconds=120.0, busy_seconds=0.99, queue_seconds=40.0)


def test_a_disk_at_what_it_was_measured_to_give() -> None:
    found = judge(with_rates(DISK_BOUND))
    verdict = phase(found).verdict
    assert verdict.resources == ("disk:vda",)
    assert "disk vda limits throughput" in verdict.sentence
    assert resource(found, "disk").intensity == pytest.approx(0.975)
    assert resource(found, "disk").saturation == "strong"


def test_reads_and_writes_share_the_disk() -> None:
    half = disk(read_bytes=200e6, write_bytes=100e6, reads=10.0, writes=10.0, busy_seconds=0.9)
    found = judge(with_rates(half))
    assert resource(found, "disk").intensity == pytest.approx(1.0)
    assert resource(found, "disk").use == pytest.approx(300e6)


def test_small_requests_are_judged_by_their_number() -> None:
    found = judge(with_rates(disk(read_bytes=19e3 * 4096, reads=19e3, busy_seconds=0.9)))
    disk_found = resource(found, "disk")
    assert disk_found.intensity == pytest.approx(0.95)
    assert disk_found.unit == "operations/s"


def test_without_ceilings_a_busy_disk_needs_signs_of_waiting() -> None:
    found = judge(with_rates(DISK_BOUND), ceilings={})
    assert phase(found).verdict.resources == ("disk:vda",)
    assert resource(found, "disk").intensity is None
    assert "were not measured" in resource(found, "disk").intensity_reason
    calm = judge(with_rates(disk(read_bytes=1e6, reads=100.0, busy_seconds=0.99, queue_seconds=1.0)), ceilings={})
    assert resource(calm, "disk").status == "near"
    assert phase(calm).verdict.kind == "none_near"


def test_a_slow_request_on_an_idle_disk_means_nothing() -> None:
    found = judge(with_rates(disk(writes=1.0, write_seconds=0.5, busy_seconds=0.01, write_bytes=4096.0)))
    assert resource(found, "disk").saturation == "none"


def test_the_busiest_of_several_disks_answers_for_the_waiting_of_the_host() -> None:
    waiting = {'pressure_stall_seconds_total{resource="io",share="full"}': 0.5}
    found = judge(with_rates(disk("vdb", read_bytes=1e6, reads=100.0, busy_seconds=0.6), waiting))
    assert phase(found).verdict.resources == ("disk:vdb",)
    assert resource(found, "disk", "vda").saturation == "none"


def test_a_link_at_line_rate() -> None:
    ceilings = {**quiet_ceilings(), 'network_bytes_per_second{interface="eth0"}': 1.25e9}
    run = with_rates(network("eth0", transmit_bytes=1.2e9, receive_bytes=1e7, transmit_packets=1e6))
    found = judge(run, ceilings=ceilings, interface="eth0")
    assert phase(found).verdict.resources == ("network:eth0",)
    assert "96 % of the speed of the link" in phase(found).verdict.sentence


def test_loopback_is_labelled_and_judged_by_its_own_ceiling() -> None:
    found = judge(with_rates(network(transmit_bytes=3.8e9, receive_bytes=3.8e9)))
    assert phase(found).verdict.resources == ("network:lo",)
    assert "loopback" in resource(found, "network").label
    unknown = judge(SyntheticRun(), ceilings={})
    assert resource(unknown, "network").status == "unknown"
    assert "rackscope calibrate" in resource(unknown, "network").advice


def test_drops_and_overflows_are_seen_without_a_ceiling() -> None:
    found = judge(with_rates({"tcp_listen_overflows_total": 20.0}), ceilings={})
    assert resource(found, "network").saturation == "strong"
    assert any("accept queue" in finding.sentence for finding in found.findings)


def test_full_memory_limits_only_when_something_waits_for_it() -> None:
    full = SyntheticRun()
    full.levels = full.levels | {'memory_bytes{kind="available"}': 1e8}
    assert resource(judge(full), "dram_capacity").status == "near"
    assert phase(judge(full)).verdict.kind == "none_near"
    full.rates = full.rates | {"swap_in_bytes_total": 2e7, "swap_out_bytes_total": 2e7}
    found = judge(full)
    assert phase(found).verdict.resources == ("dram_capacity",)
    assert "swapped" in phase(found).verdict.sentence


def test_a_control_group_at_its_memory_limit() -> None:
    run = with_rates({'pressure_stall_seconds_total{resource="memory",share="some"}': 0.3})
    run.levels = run.levels | {
        'cgroup_memory_bytes{cgroup="box",kind="current"}': 0.99e9,
        'cgroup_memory_limit_bytes{cgroup="box"}': 1e9,
    }
    found = judge(run)
    assert phase(found).verdict.resources == ("dram_capacity",)
    assert resource(found, "dram_capacity").intensity == pytest.approx(0.99)
    assert "control group box" in resource(found, "dram_capacity").label


def test_a_throttled_group_is_limited_by_cpu_with_idle_cores() -> None:
    found = judge(with_rates({'cgroup_throttled_seconds_total{cgroup="box"}': 0.4}))
    assert phase(found).verdict.resources == ("cpu_system",)
    assert "CPU limit throttled it 40 % of the time" in phase(found).verdict.sentence
    assert "throttled" in {warning.code for warning in found.warnings}


def four_cores(*shares: float) -> dict[str, Any]:
    rates: dict[str, Any] = {}
    for number, share in enumerate(shares):
        rates |= core(number, user=share)
    return rates | all_cores(rates, len(shares))


def test_one_full_core_of_several_is_a_single_thread() -> None:
    run = with_rates(four_cores(0.02, 0.99, 0.03, 0.3), process(user=1.0))
    found = judge(run, host_cores=4, system_cores=(0, 1, 2), client_cores=(3,))
    verdict = phase(found).verdict
    assert verdict.resources == ("cpu_system",)
    assert "Core 1 was busy 99 % of the time while all 3 cores together were busy 35 %" in verdict.sentence
    assert any("one thread that never waits" in finding.sentence for finding in found.findings)


def test_the_clients_full_core_is_not_the_systems() -> None:
    run = with_rates(four_cores(0.3, 0.99, 0.1, 0.1), process(user=0.3))
    found = judge(run, host_cores=4, system_cores=(0,), client_cores=(1,))
    assert phase(found).verdict.kind == "none_near"


def test_several_limits_are_all_named_hardest_first() -> None:
    ceilings = {**quiet_ceilings(), "loopback_bytes_per_second": 2e9}
    run = with_rates(CPU_BOUND, network(transmit_bytes=1.82e9, receive_bytes=1.82e9))
    found = judge(run, ceilings=ceilings)
    assert phase(found).verdict.resources == ("cpu_system", "network:lo")
    assert "it limits as well" in phase(found).verdict.sentence


def perf(fills: float = 2e8, cycles: float = 3e9, instructions: float = 1e9) -> dict[str, Any]:
    return {
        'perf_dram_fills_total{scope="host"}': fills,
        'perf_cycles_total{scope="host"}': cycles,
        'perf_instructions_total{scope="host"}': instructions,
        'perf_llc_misses_total{scope="host"}': fills / 2,
    }


def test_dram_bandwidth_against_its_ceiling() -> None:
    found = judge(with_rates(perf(fills=18e9 / 64)))
    bandwidth = resource(found, "dram_bandwidth")
    assert bandwidth.use == pytest.approx(18e9)
    assert bandwidth.intensity == pytest.approx(0.9)
    assert phase(found).verdict.resources == ("dram_bandwidth",)
    assert any("3.00 cycles" in finding.sentence for finding in found.findings)


def test_an_untrusted_counter_gives_no_intensity() -> None:
    probe = ProbeReport(
        "perf", "untrusted", "off by 40 % from a kernel of known size", "", ('perf_dram_fills_total{scope="host"}',)
    )
    found = judge(with_rates(perf(fills=18e9 / 64)), probes=(probe,))
    assert resource(found, "dram_bandwidth").intensity is None
    assert "off by 40 %" in resource(found, "dram_bandwidth").intensity_reason
    assert phase(found).verdict.kind == "none_near"
    assert "untrusted_probe" in {warning.code for warning in found.warnings}


def test_a_full_core_without_perf_says_what_is_not_known() -> None:
    probe = ProbeReport(
        "perf", "missing", "this guest has no counters", "a host with a PMU", ('perf_dram_fills_total{scope="host"}',)
    )
    found = judge(with_rates(CPU_BOUND, process(user=0.13, system=0.60)), probes=(probe,))
    assert "this guest has no counters" in phase(found).verdict.sentence
    assert resource(found, "dram_bandwidth").intensity is None


def without(run: SyntheticRun, *prefixes: str) -> SyntheticRun:
    run.rates = {name: rate for name, rate in run.rates.items() if not name.startswith(prefixes)}
    run.levels = {name: level for name, level in run.levels.items() if not name.startswith(prefixes)}
    return run


def test_no_verdict_without_the_cpu() -> None:
    probe = ProbeReport("cpu", "missing", "/proc/stat is hidden", "a /proc of the host", ("cpu_seconds_total",))
    verdict = phase(judge(without(SyntheticRun(), "cpu_"), probes=(probe,))).verdict
    assert verdict.kind == "no_verdict"
    assert "/proc/stat is hidden" in verdict.sentence
    assert verdict.advice == "It needs a /proc of the host."


def test_nothing_near_is_not_said_with_a_blind_eye() -> None:
    blind = without(SyntheticRun(), "network_", "tcp_")
    verdict = phase(judge(blind)).verdict
    assert verdict.kind == "no_verdict"
    assert "loopback was not measured" in verdict.sentence


def test_waiting_speaks_for_a_disk_without_counters() -> None:
    found = judge(without(SyntheticRun(), "disk_"))
    assert resource(found, "disk").intensity is None
    assert resource(found, "disk").saturation == "none"
    assert phase(found).verdict.kind == "none_near"


def test_a_limit_that_is_seen_is_named_whatever_else_is_missing() -> None:
    verdict = phase(judge(without(with_rates(CPU_BOUND), "network_", "tcp_", "disk_", "memory_"))).verdict
    assert verdict.resources == ("cpu_system",)


def test_no_interface_is_asked_for_on_a_unix_socket() -> None:
    found = judge(without(SyntheticRun(), "network_", "tcp_"), interface=None)
    assert phase(found).verdict.kind == "none_near"
    assert not [one for one in phase(found).resources if one.resource == "network"]


def test_a_host_shared_with_the_client_is_said_so() -> None:
    rates = core(0, user=0.5, system=0.49)
    run = with_rates(rates | all_cores(rates, 1))
    found = judge(run, host_cores=1, system_cores=(0,), client_cores=(0,))
    assert phase(found).verdict.resources == ("cpu_system",)
    shared = "memcached and the load generator shared core 0, which was busy 99 % of the time"
    assert phase(found).verdict.sentence.startswith(shared)
    assert "shared_cores" in {warning.code for warning in found.warnings}


def test_an_unpinned_system_has_the_whole_host() -> None:
    found = judge(with_rates(two_cores({"user": 0.98}, {"user": 0.98})), system_cores=(), client_cores=())
    assert "All 2 cores of the host were busy 98 %" in phase(found).verdict.sentence


def test_a_discarded_repetition_does_not_count() -> None:
    run = with_rates(CPU_BOUND)
    results = run.results().with_columns(
        pl.when(pl.col("repetition") == 2).then(pl.lit("the host was suspended")).alias("discarded")
    )
    found = characterise(run.run_facts(), run.samples(), results, pl.DataFrame())
    assert phase(found).repetitions == 2
    assert phase(found).seconds == ((4.0, 9.0), (14.0, 19.0))
    assert {"discarded", "too_few_repetitions"} <= {warning.code for warning in found.warnings}


def test_a_resource_that_is_full_for_a_while_only() -> None:
    ceilings = quiet_ceilings()
    phases: list[tuple[str, str, int | None, float]] = [("measure", "measure", number, 5.0) for number in (1, 2, 3)]
    run = SyntheticRun(phases=phases)
    table = run.samples()
    seconds = (table["timestamp_ns"] - table["timestamp_ns"][0]) / 1e9
    burst = (seconds - 6.0).clip(0, 3) * 390e6
    table = table.with_columns((burst + 1.0).alias('disk_read_bytes_total{device="vda"}'))
    found = characterise(run.run_facts(ceilings=ceilings), table, run.results(), pl.DataFrame())
    assert phase(found).verdict.kind == "none_near"
    told = [finding for finding in found.findings if "Disk vda: at the limit for" in finding.sentence]
    assert len(told) == 1
    (window,) = told[0].evidence[0].seconds
    assert window == pytest.approx((5.57, 8.57), abs=1.0)


def test_what_is_at_its_limit_on_average_is_not_said_to_be_for_a_while_only() -> None:
    found = judge(with_rates(CPU_BOUND))
    assert phase(found).verdict.resources == ("cpu_system",)
    assert not [finding for finding in found.findings if "though not on average" in finding.sentence]


def test_counters_that_were_reset_do_not_make_a_verdict() -> None:
    run = with_rates(CPU_BOUND)
    table = run.samples()
    middle = len(table) // 2
    counters = [name for name in table.columns if name.endswith("_total") or "_total{" in name]
    before, after = table[:middle], table[middle:].with_columns(pl.col(counters) - pl.col(counters).first())
    assert all(later < earlier for later, earlier in zip(after[counters].row(0), before[counters].row(-1), strict=True))
    found = characterise(run.run_facts(), pl.concat([before, after]), run.results(), pl.DataFrame())
    assert resource(found, "cpu_system").intensity == pytest.approx(0.99, abs=0.01)


@pytest.mark.parametrize(("hertz", "said"), [(10.0, True), (0.36, False)])
def test_memory_grows_where_three_readings_of_a_window_say_so(hertz: float, said: bool) -> None:
    run = SyntheticRun(hertz=hertz)
    table = run.samples()
    seconds = (table["timestamp_ns"] - table["timestamp_ns"][0]) / 1e9
    table = table.with_columns((1e9 + 1e8 * seconds).alias('process_resident_bytes{process="system"}'))
    found = characterise(run.run_facts(), table, run.results(), pl.DataFrame())
    told = [finding for finding in found.findings if "Resident memory grew by" in finding.sentence]
    assert len(told) == said


def test_stages_are_judged_one_by_one() -> None:
    phases: list[tuple[str, str, int | None, float]] = [
        (name, "measure", number, 3.0) for number in (1, 2, 3) for name in ("lpush", "zadd")
    ]
    run = with_rates(
        two_cores({"user": only_in("zadd", 0.98, 0.2)}, {"user": 0.3}), phases=phases, throughputs=[1e4] * 6
    )
    found = judge(run)
    assert {one.phase: one.verdict.kind for one in found.phases} == {"lpush": "none_near", "zadd": "limited"}
    assert phase(found, "zadd").seconds == ((3.0, 6.0), (9.0, 12.0), (15.0, 18.0))


def test_figures_are_in_base_units() -> None:
    figures = phase(judge(with_rates(process(user=0.02, system=0.08, voluntary=15_000.0, involuntary=5000.0)))).figures
    assert figures["cpu_seconds_per_operation"] == pytest.approx(0.1 / 20_000)
    assert figures["operations_per_core_second"] == pytest.approx(200_000)
    assert figures["context_switches_per_operation"] == pytest.approx(1.0, rel=0.01)
    assert figures["kernel_share_ratio"] == pytest.approx(0.8)
    assert figures["bytes_per_operation"] == pytest.approx(1050)
    assert figures["hit_ratio"] == 1.0


def test_insights_of_a_system_that_sleeps_and_wakes() -> None:
    found = judge(with_rates(process(user=0.02, system=0.08, voluntary=20_000.0)))
    sentences = " ".join(finding.sentence for finding in found.findings)
    assert "switched context 1.00 times for each operation" in sentences
    assert "80 % of memcached's CPU time is spent in the kernel" in sentences
    assert "An operation costs memcached 5.00 µs of CPU" in sentences


def test_memory_that_grows_is_told() -> None:
    run = SyntheticRun()
    table = run.samples()
    grown = 1e9 + 2e7 * (table["timestamp_ns"] - table["timestamp_ns"][0]) / 1e9
    table = table.with_columns(grown.alias('process_resident_bytes{process="system"}'))
    found = characterise(run.run_facts(), table, run.results(), pl.DataFrame())
    assert phase(found).figures["resident_growth_bytes_per_second"] == pytest.approx(2e7, rel=0.01)
    assert any("Resident memory grew by 19.1 MiB/s" in finding.sentence for finding in found.findings)


def test_the_loopback_path_is_told_when_it_is_what_is_measured() -> None:
    found = judge(SyntheticRun(throughputs=[140e3, 141e3, 140.5e3]))
    assert any("a responder that does nothing" in finding.sentence for finding in found.findings)
    pipelined = judge(SyntheticRun(throughputs=[140e3, 141e3, 140.5e3]), pipeline=16)
    assert not any("a responder that does nothing" in finding.sentence for finding in pipelined.findings)


def test_findings_come_by_importance_and_become_json() -> None:
    found = judge(with_rates(CPU_BOUND, perf()))
    importances = [finding.importance for finding in found.findings]
    assert importances == sorted(importances, reverse=True)
    shown = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert shown["phases"][2]["verdict"]["resources"] == ["cpu_system"]
    assert shown["findings"][0]["evidence"][0]["threshold"] == "intensity.cpu_system.limit"


def test_nothing_at_all_is_answered_with_nothing() -> None:
    found = characterise(SyntheticRun().facts, pl.DataFrame(), pl.DataFrame(), pl.DataFrame())
    assert found.phases == ()
    assert [warning.code for warning in found.warnings] == ["nothing_measured"]


def test_phases_without_samples_or_results_have_no_verdict() -> None:
    found = characterise(SyntheticRun().run_facts(), pl.DataFrame(), pl.DataFrame(), pl.DataFrame())
    assert {one.verdict.kind for one in found.phases} == {"no_verdict"}


RUN = with_rates(CPU_BOUND, perf(), DISK_BOUND)
TABLE, RESULTS = RUN.samples(), RUN.results()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_whatever_is_missing_every_verdict_has_evidence(data: st.DataObject) -> None:
    """No column is needed for an answer, and none that is missing is read as zero."""
    lost = data.draw(st.sets(st.sampled_from([name for name in TABLE.columns if name != "timestamp_ns"])))
    nulled = data.draw(st.sets(st.sampled_from(TABLE.columns[1:]), max_size=20))
    unknown = data.draw(st.sets(st.sampled_from([name for name in RESULTS.columns if name not in ("phase", "kind")])))
    table = TABLE.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in nulled).drop(lost)
    ceilings = data.draw(st.sampled_from([{}, quiet_ceilings()]))
    found = characterise(RUN.run_facts(ceilings=ceilings), table, RESULTS.drop(unknown), pl.DataFrame())
    json.dumps(found.to_dict(), allow_nan=False)
    readable = set(table.columns) - nulled | set(RESULTS.columns) - unknown
    for one in found.phases:
        assert one.verdict.sentence
        if one.verdict.kind in ("limited", "generator"):
            assert one.verdict.evidence
        for judged in one.resources:
            assert judged.intensity is not None or judged.intensity_reason
            assert judged.status == "unknown" or judged.evidence or judged.saturation is not None
            for evidence in judged.evidence:
                assert set(evidence.columns) <= readable


def latency(**tails: int) -> pl.DataFrame:
    """One histogram for each operation, all of it at one value in nanoseconds."""
    rows = []
    for operation, nanoseconds in tails.items():
        histogram = histogram_of(7, 64, [nanoseconds] * 100)
        rows.append(
            {
                "phase": "measure", "repetition": 1, "operation": operation, "kind": "response",
                "grouping_power": 7, "max_value_power": 64,
                "index": histogram.index.tolist(), "count": histogram.count.tolist(),
            }
        )  # fmt: skip
    return pl.DataFrame(rows)


def test_an_operation_whose_tail_stands_out() -> None:
    run = SyntheticRun()

    def sentences(frame: pl.DataFrame) -> str:
        found = characterise(run.run_facts(), run.samples(), run.results(), frame)
        return " ".join(finding.sentence for finding in found.findings)

    assert "The 99th percentile of 'update' (5" in sentences(latency(read=1_000_000, update=5_000_000))
    assert "99th percentile of" not in sentences(latency(read=1_000_000, update=1_100_000))
    damaged = latency(read=1_000_000, update=5_000_000).with_columns(pl.lit(99).alias("max_value_power"))
    assert "99th percentile of" not in sentences(damaged)


def test_a_ceiling_that_failed_its_check_is_not_used() -> None:
    name = "loopback_bytes_per_second"
    found = judge(SyntheticRun(), distrusted={name: "repetitions lie 40 % apart"})
    assert resource(found, "network").intensity is None
    assert "repetitions lie 40 % apart" in resource(found, "network").intensity_reason


def test_a_counter_that_failed_calibration_is_not_used() -> None:
    run = with_rates(perf(fills=18e9 / 64))
    found = judge(run, distrusted={'perf_dram_fills_total{scope="host"}': "12 % off a kernel of known size"})
    assert "12 % off" in resource(found, "dram_bandwidth").intensity_reason


def test_loading_is_closed_in_a_run_that_measures_open() -> None:
    run = SyntheticRun()
    results = run.results().with_columns(
        pl.when(pl.col("kind") == "measure").then(20_000.0).alias("offered_operations_per_second")
    )
    facts = run.run_facts(loop="open", offered_operations_per_second=20_000.0)
    found = characterise(facts, run.samples(), results, pl.DataFrame())
    assert "offered rate was met" in phase(found, "measure").verdict.sentence
    assert "offered rate" not in phase(found, "load").verdict.sentence
