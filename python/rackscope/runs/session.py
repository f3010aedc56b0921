"""A system, its sampler and its client from start to stop; what is done in between is up to the caller."""

from __future__ import annotations

import contextlib
import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rackscope.errors import LoadError, RackscopeError
from rackscope.host.meters import parse_meters
from rackscope.runs.client import Client, client_configuration, interval_frame
from rackscope.runs.directory import RunWriter
from rackscope.runs.ending import Ending, watched
from rackscope.runs.interruption import held_back
from rackscope.runs.manifest import Manifest, PhasePart, ProbePart, meter_parts
from rackscope.runs.options import Loop, Progress, ProgressCallback
from rackscope.runs.placement import Placement
from rackscope.runs.prepare import Prepared, first_manifest
from rackscope.runs.records import latency_rows, result_row
from rackscope.runs.sampling import HostSampler, cgroup_of
from rackscope.runs.tables import latency_frame, results_frame
from rackscope.squeezes.base import Isolation
from rackscope.squeezes.isolation import make_isolation
from rackscope.squeezes.journal import Journal
from rackscope.systems.base import Launch, RunningSystem
from rackscope.units import now_text
from rackscope.workloads import PhasePlan

#: How often samples reach the disk while a phase lasts: what a kill can cost. Each time takes milliseconds of a core
#: that the load generator may share, and makes what it sends meanwhile late.
_FLUSH_SECONDS = 5.0
#: A second is what idle power is judged by (limit.power.idle_seconds), and half a one for what starting it left to do.
_REST_SECONDS = 1.5


class Session:
    """One system under one client, once; ``run`` does everything, ``writer.path`` is where it is kept.

    ``isolation`` is where the system is started so that it can be squeezed; by default it runs as any program does.
    """

    def __init__(
        self, prepared: Prepared, progress: ProgressCallback, folder: Path, isolation: Isolation | None = None
    ) -> None:
        self.prepared = prepared
        self.progress = progress
        self.isolation = isolation or Isolation()
        self.writer = RunWriter.create(folder)
        self.manifest = first_manifest(prepared)
        self._sampler: HostSampler | None = None
        self._system: RunningSystem | None = None
        self._client: Client | None = None
        self._pending: list[dict[str, float]] = []
        self._last_flush = 0.0
        self.flush_seconds = _FLUSH_SECONDS
        self._generator_cpu_seconds = 0.0

    @property
    def system(self) -> RunningSystem:
        assert self._system is not None
        return self._system

    @property
    def interval_seconds(self) -> float:
        """How often the host is sampled."""
        return self.prepared.options.sample_interval_seconds

    def run(self, work: Callable[[Session], None], close: Callable[[Session], None] | None = None) -> None:
        """Start everything, do ``work``, and close the directory however it ends; a second Ctrl-C does not cut that.

        ``close`` may add to the manifest before it is written for the last time. Raises what ``work`` raises.
        """
        ending = Ending()
        with held_back() as interruptions:
            self.writer.write_manifest(self.manifest)
            try:
                with watched() as ending, contextlib.ExitStack() as stack, interruptions.allowed():
                    self._start(stack)
                    work(self)
                    self.manifest.system.statistics = dict(self.system.statistics())
            finally:
                self.progress(Progress("writing the run directory"))
                if close is not None:
                    close(self)
                # A log that cannot be read or written is no reason to lose the run.
                with contextlib.suppress(RackscopeError, OSError):
                    self.writer.redact_logs()
                self._finish(ending.status, ending.reason)

    def _start(self, stack: contextlib.ExitStack) -> None:
        prepared, options = self.prepared, self.prepared.options
        stack.enter_context(_beside_the_system(prepared.placement))
        queues = prepared.system.interface_queues(prepared.knobs.values, options.connections)
        if queues is not None and self.isolation.network_namespace is None:
            journal = stack.enter_context(Journal())
            self.isolation = stack.enter_context(make_isolation("run", journal, queues=queues))
        self.progress(Progress(f"starting {prepared.system.name}"))
        launch = Launch(
            folder=self.writer.logs,
            cores=prepared.placement.system,
            knobs=prepared.knobs.values,
            endpoint_kind=options.endpoint_kind,
            port=options.port,
            control_groups=tuple(dict.fromkeys(self.isolation.control_groups.values())),
            network_namespace=self.isolation.network_namespace,
            address=self.isolation.address or Launch.address,
            host_interface=self.isolation.host_interface,
            system_interface=self.isolation.system_interface,
        )
        system = prepared.system.start(prepared.acquired, launch)
        stack.callback(system.stop)
        self._system = system
        ready_seconds = system.wait_ready()
        part = self.manifest.system
        part.command, part.endpoint, part.pid = list(system.command), system.endpoint.describe(), system.pid
        part.ready_seconds = ready_seconds
        part.interface = self.isolation.host_interface

        group = cgroup_of(system.pid)
        sampler = HostSampler(
            options.sample_interval_seconds,
            {"system": system.pid, "rackscope": os.getpid()},
            {"system": group} if group is not None else {},
            parse_meters(options.meters),
        )
        self._sampler = sampler
        stack.callback(self._stop_sampler)
        _describe_probes(self.manifest, sampler)
        sampler.start()

        placement = prepared.placement
        self._client = Client(client_configuration(options, prepared.plan, system.target, placement))
        stack.callback(self._client.close)
        self.writer.write_manifest(self.manifest)

    def rest(self) -> None:
        """Where power is metered, hold still before the first load, so that what the idle host takes is known."""
        if self._sampler is not None and self._sampler.meters_power:
            self.progress(Progress("measuring idle power"))
            time.sleep(_REST_SECONDS)

    def preload(self) -> None:
        """Put the workload's data set into the system, where it has one."""
        if self.prepared.plan.preload is not None:
            self.phase(self.prepared.plan.preload, Loop(), activity="loading the data set")

    def warm_up(self, loop: Loop) -> None:
        """Ask for what the first stage asks for, unmeasured, for as long as the options say."""
        seconds = self.prepared.options.warm_up_seconds
        if seconds > 0:
            first = self.prepared.plan.stages[0]
            plan = PhasePlan("warm-up", "warm-up", first.operations, first.distribution)
            self.phase(plan, loop, seconds, activity="warming up")

    def ramp(self, plan: PhasePlan, loop: Loop, seconds: float) -> None:
        """Drive a phase's load, unmeasured, right before it: what was idle has credit with token buckets."""
        assert self._client is not None
        self._judge(plan, self._client.run_phase(plan, loop, seconds, lambda _intervals: None))

    def phase(
        self,
        plan: PhasePlan,
        loop: Loop,
        duration_seconds: float | None = None,
        repetition: int | None = None,
        *,
        activity: str = "",
        discard: Callable[[dict[str, Any]], str] | None = None,
    ) -> dict[str, Any]:
        """Drive one phase to its end; its row of ``results.parquet``, which is already on disk.

        ``discard`` says of a row why it should not count; empty when it should.

        Raises LoadError when what it measured cannot be believed, SystemUnderTestError when the system died.
        """

        assert self._client is not None
        part = PhasePart(name=plan.name, kind=plan.kind, repetition=repetition, start_ns=time.time_ns())
        self.manifest.phases.append(part)
        self.writer.write_manifest(self.manifest)
        started = self._last_flush = time.monotonic()

        def on_tick(intervals: list[dict[str, float]]) -> None:
            self._tick(intervals, activity or plan.name, time.monotonic() - started, duration_seconds, plan)

        try:
            result = self._client.run_phase(plan, loop, duration_seconds, on_tick)
        except BaseException:
            with held_back():
                partial = self._client.partial_result()
                if partial is not None:
                    self._record(part, partial, "the phase was cut short")
            raise
        with held_back():
            row = self._record(part, result, None, discard)
        self._judge(plan, result)
        return row

    def _record(
        self,
        part: PhasePart,
        result: dict[str, Any],
        discarded: str | None,
        discard: Callable[[dict[str, Any]], str] | None = None,
    ) -> dict[str, Any]:
        part.start_ns, part.end_ns = result["start_ns"], result["end_ns"]
        part.first_error = result.get("first_error") or ""
        # One more tick of the sampler, so that the end of the phase lies between two samples.
        self._settle_samples(result["end_ns"])
        assert self._sampler is not None
        cpu_seconds, resident_bytes = self._sampler.system_use(part.start_ns, part.end_ns)
        failed = discarded or result.get("failed")
        row = result_row(part.name, part.kind, part.repetition, result, cpu_seconds, resident_bytes, failed)
        if discard is not None and not row["discarded"]:
            row["discarded"] = discard(row) or None
        self._generator_cpu_seconds += row["generator_cpu_seconds"] or 0.0
        self.writer.append("latency", latency_frame(latency_rows(part.name, part.repetition, result)))
        self.writer.append("results", results_frame([row]))
        self.writer.write_manifest(self.manifest)
        return row

    def _judge(self, plan: PhasePlan, result: dict[str, Any]) -> None:
        """Raises when the phase cannot be believed: the system died, the protocol broke, a value was wrong."""
        assert self._system is not None
        if result.get("failed"):
            self._system.check_alive()
            raise LoadError(
                f"phase {plan.name} broke off: {result['failed']}",
                f"See what {self._system.name} logged: {self._system.log}.",
            )
        if result["wrong_values"]:
            raise LoadError(
                f"{result['wrong_values']} wrong responses in phase {plan.name}; the first: {result['first_wrong']}",
                "The system returned values that were never written: do not use its figures.",
            )

    def _tick(
        self,
        intervals: list[dict[str, float]],
        activity: str,
        elapsed_seconds: float,
        duration_seconds: float | None,
        plan: PhasePlan,
    ) -> None:
        self._pending.extend(intervals)
        now = time.monotonic()
        if now - self._last_flush >= self.flush_seconds:
            self._last_flush = now
            self._flush()
        latest = intervals[-1] if intervals else {}
        done: float | None = None
        if duration_seconds:
            done = min(1.0, elapsed_seconds / duration_seconds)
        elif plan.operation_count and latest:
            # Counting phases come first on a client, so that its total is theirs.
            done = min(1.0, latest.get("load_operations_total", 0.0) / plan.operation_count)
        self.progress(
            Progress(
                activity,
                done,
                latest.get("load_throughput_operations_per_second"),
                latest.get('load_response_seconds{quantile="0.99"}'),
            )
        )

    def _settle_samples(self, moment_ns: int) -> None:
        assert self._sampler is not None
        deadline = time.monotonic() + 3 * self._sampler.interval_seconds + 0.2
        while time.monotonic() < deadline:
            newest = self._flush()
            if newest is not None and newest > moment_ns:
                return
            time.sleep(min(0.02, self._sampler.interval_seconds))

    def _flush(self) -> int | None:
        """Put what was sampled on disk; the time of the newest host sample."""
        intervals, self._pending = self._pending, []
        if intervals:
            self.writer.append("samples", interval_frame(intervals))
        host = self._sampler.drain() if self._sampler is not None else None
        if host is None or not host.height:
            return None
        self.writer.append("samples", host)
        return int(host["timestamp_ns"][-1])

    def _stop_sampler(self) -> None:
        if self._sampler is None:
            return
        cost = self._sampler.stop()
        overhead = self.manifest.overhead
        overhead.sampler_interval_seconds = self._sampler.interval_seconds
        overhead.sampler_ticks = int(cost["ticks"])
        overhead.sampler_missed_ticks = int(cost["missed_ticks"])
        overhead.sampler_cpu_seconds = cost["cpu_seconds"]
        overhead.sampler_wall_seconds = cost["wall_seconds"]
        overhead.sampler_worst_lateness_seconds = cost["worst_lateness_seconds"]
        # Anew: what could not be read now and then is known by now.
        _describe_probes(self.manifest, self._sampler)
        self._flush()

    def _finish(self, status: Any, reason: str) -> None:
        """Close the directory. A failure to write must not hide why the run ended."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.manifest.overhead.rackscope_cpu_seconds = usage.ru_utime + usage.ru_stime
        self.manifest.overhead.generator_cpu_seconds = self._generator_cpu_seconds
        self.manifest.status, self.manifest.status_reason = status, reason
        self.manifest.finished_at = now_text()
        if status == "complete":
            try:
                self.writer.join_parts()
                self.writer.write_manifest(self.manifest)
                return
            except RackscopeError as error:
                # Parts that could not be joined are read as they are.
                self.manifest.status, self.manifest.status_reason = "failed", error.what
                with contextlib.suppress(RackscopeError):
                    self.writer.write_manifest(self.manifest)
                raise
        with contextlib.suppress(RackscopeError):
            self.writer.write_manifest(self.manifest)
            self.writer.join_parts()


def _describe_probes(manifest: Manifest, sampler: HostSampler) -> None:
    manifest.probes = [ProbePart.model_validate(probe) for probe in sampler.probes]
    manifest.meters = meter_parts(manifest.probes)


@contextlib.contextmanager
def _beside_the_system(placement: Placement) -> Iterator[None]:
    """Keep rackscope's threads, but the load generator's, off the system's cores, where there are others."""
    before = os.sched_getaffinity(0)
    elsewhere = (before - set(placement.system)) | set(placement.client)
    if not elsewhere:
        yield
        return
    os.sched_setaffinity(0, elsewhere)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
