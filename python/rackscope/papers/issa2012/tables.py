"""Tables 2 to 4 and 6 to 8: ratios of what was measured, computed again from the measured numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rackscope.papers.issa2012 import printed
from rackscope.papers.issa2012.equations import CpiLine, performance_per_watt
from rackscope.papers.issa2012.printed import DiskRow, MemcachedServer, PowerRow
from rackscope.papers.reproduction import Comparison, DerivedTable, Section


def speedups_of_table_2() -> tuple[float, ...]:
    """Seconds of ATOM over seconds of NHM, in the order of the table."""
    return tuple(row.seconds[1] / row.seconds[0] for row in printed.TABLE_2)


def table_2() -> Section:
    """Speedups in time and in tasks a minute."""
    comparisons = []
    tasks: list[tuple[str | float, ...]] = []
    for row, speedup in zip(printed.TABLE_2, speedups_of_table_2(), strict=True):
        comparisons.append(Comparison(f"{row.workload}: speedup", row.speedup, speedup, "", "ATOM time / NHM time"))
        if row.tasks_per_minute:
            ratio = row.tasks_per_minute[0] / row.tasks_per_minute[1]
            comparisons.append(
                Comparison(
                    f"{row.workload}: speedup in tasks", row.tasks_speedup, ratio, "", "tasks/min of NHM / of ATOM"
                )
            )
            nhm, atom = (rate * time / 60 for rate, time in zip(row.tasks_per_minute, row.seconds, strict=True))
            tasks.append((row.workload, nhm, atom, nhm / atom))
    derived = DerivedTable(
        "Tasks that the two columns amount to: tasks a minute times minutes",
        ("workload", "tasks on NHM", "tasks on ATOM", "ratio"),
        tuple(tasks),
        decimals=(None, 0, 0, 2),
    )
    return Section(
        "table-2", "Table 2: Hadoop, NHM against ATOM, time and tasks", tuple(comparisons), derived=(derived,)
    )


def table_3() -> Section:
    """Power, and performance per watt (equation 1) and per dollar, NHM against ATOM."""
    cost = printed.TABLE_3_DOLLARS[0] / printed.TABLE_3_DOLLARS[1]
    speedups = speedups_of_table_2()
    comparisons = [
        one
        for row, speedup in zip(printed.TABLE_3, speedups, strict=True)
        for one in _efficiency(row, speedup, cost, f"speedup of table 2 / ($7300/$650 = {cost:.2f})")
    ]
    needed = tuple(
        (row.workload, speedup, float(row.per_dollar), *_prices(speedup, row.per_dollar))
        for row, speedup in zip(printed.TABLE_3, speedups, strict=True)
    )
    derived = DerivedTable(
        "The ratio of prices that each printed performance per dollar asks for",
        ("workload", "speedup", "printed per $", "least price ratio", "most price ratio"),
        needed,
        f"Between least and most, the printed digits come out, rounded or cut off. Table 3's own ratio is {cost:.2f}, "
        f"table 4's is {printed.TABLE_4_DOLLARS[0] / printed.TABLE_4_DOLLARS[1]:.2f}.",
        decimals=(None, 2, None, 2, 2),
    )
    return Section(
        "table-3",
        "Table 3: watts, performance per watt and per dollar, NHM against ATOM",
        tuple(comparisons),
        "Speedups are those of table 2 in time.",
        (derived,),
    )


def table_4() -> Section:
    """The same for WSM, whose times are in the table."""
    cost = printed.TABLE_4_DOLLARS[0] / printed.TABLE_4_DOLLARS[1]
    comparisons = [Comparison("cost ratio", printed.TABLE_4_COST_RATIO, cost, "", "$7307 / $628")]
    for row, (seconds, speedup_printed) in zip(printed.TABLE_4, printed.TABLE_4_TIMES, strict=True):
        speedup = seconds[1] / seconds[0]
        comparisons.append(Comparison(f"{row.workload}: speedup", speedup_printed, speedup, "", "ATOM time / WSM time"))
        comparisons.extend(_efficiency(row, speedup, cost, f"speedup / ($7307/$628 = {cost:.2f})"))
    same = tuple(
        (nhm.workload, nhm.watts[0], wsm.watts[0], 100 * (wsm.watts[0] / nhm.watts[0] - 1))
        for nhm, wsm in zip(printed.TABLE_3, printed.TABLE_4, strict=True)
    )
    derived = DerivedTable(
        "Watts of two different processors",
        ("workload", "NHM (table 3)", "WSM (table 4)", "difference, %"),
        same,
        decimals=(None, None, None, 2),
    )
    return Section("table-4", "Table 4: price and power, WSM against ATOM", tuple(comparisons), derived=(derived,))


def table_6() -> Section:
    """Memcached on ATOM and WSM; the CPI of either is where the paper's line for it has to pass."""
    atom, wsm = printed.TABLE_6_ATOM, printed.TABLE_6_WSM
    ratio = wsm.operations_per_second / atom.operations_per_second
    power = wsm.watts / atom.watts
    lines = {name: CpiLine(line[0], line[1]) for name, line in printed.MEMCACHED_LINES.items()}
    throughput, cycles = "throughput of WSM / of ATOM", "cycles/instruction"
    by_socket, by_core = ratio * atom.sockets / wsm.sockets, ratio * atom.cores / wsm.cores
    comparisons = tuple(
        Comparison(*row)
        for row in (
            ("throughput per node, WSM against ATOM", printed.TABLE_6_PER_NODE, ratio, "", throughput),
            ("throughput per socket", printed.TABLE_6_PER_SOCKET, by_socket, "", f"{throughput}, over sockets (2 / 1)"),
            ("throughput per core", printed.TABLE_6_PER_CORE, by_core, "", f"{throughput}, over cores (12 / 2)"),
            ("power ratio (text)", printed.TEXT_POWER_RATIO, power, "", "watts of WSM / of ATOM"),
            ("performance ratio (text)", printed.TEXT_PERFORMANCE_RATIO, ratio, "", throughput),
            ("CPI of ATOM at 1,800 MHz", atom.cpi, lines["ATOM"].cpi(1800), cycles, "1 / (0.304 - 250/1800)"),
            ("CPI of WSM at 2,270 MHz", wsm.cpi, lines["WSM"].cpi(2270), cycles, "1 / (0.505 - 402/2270)"),
        )
    )
    by_equation = wsm.instructions_per_second / atom.instructions_per_second
    others: tuple[tuple[str, Callable[[MemcachedServer], float], int], ...] = (
        (
            "requests on their way (throughput x latency)",
            lambda one: one.operations_per_second * one.latency_seconds,
            1,
        ),
        ("operations per second and watt", lambda one: one.operations_per_second / one.watts, 1),
        (
            "instructions per second, 10^9 (cores x clock x use / CPI)",
            lambda one: one.instructions_per_second / 1e9,
            3,
        ),
        ("instructions per operation", lambda one: one.instructions_per_second / one.operations_per_second, 0),
    )
    derived = DerivedTable(
        "What else the table says of the two",
        ("quantity", "ATOM", "WSM", "WSM / ATOM"),
        tuple(
            (what, round(of(atom), digits), round(of(wsm), digits), round(of(wsm) / of(atom), 2))
            for what, of, digits in others
        ),
        f"By equation 2 with one path length, throughput should differ {by_equation:.2f} times; it differs {ratio:.2f} "
        "times, so that instructions per operation are not the same on both.",
    )
    return Section("table-6", "Table 6: memcached, WSM against ATOM", comparisons, derived=(derived,))


def tables_7_and_8() -> tuple[Section, Section]:
    """Disk operations per second and watt."""
    return (
        _disk("table-7", "Table 7: disk, ATOM D525", printed.TABLE_7),
        _disk("table-8", "Table 8: disk, WSM X5660", printed.TABLE_8),
    )


def _disk(identifier: str, title: str, rows: tuple[DiskRow, ...]) -> Section:
    comparisons = tuple(
        Comparison(
            f"{row.pattern}: operations per second and watt",
            row.per_watt,
            row.operations_per_second / row.watts,
            "operations/s/W",
            "operations/s / watts",
        )
        for row in rows
    )
    derived = DerivedTable(
        f"Operations in flight by Little's law, where the queue depth is {printed.DISK_QUEUE_DEPTH}",
        ("pattern", "operations/s x latency", "over the queue depth, %"),
        tuple(
            (
                row.pattern,
                row.operations_per_second * row.latency_seconds,
                100 * (row.operations_per_second * row.latency_seconds / printed.DISK_QUEUE_DEPTH - 1),
            )
            for row in rows
        ),
        decimals=(None, 2, 1),
    )
    return Section(identifier, title, comparisons, derived=(derived,))


def _efficiency(row: PowerRow, speedup: float, cost: float, cost_formula: str) -> Iterator[Comparison]:
    power = row.watts[0] / row.watts[1]
    yield Comparison(
        f"{row.workload}: power ratio", row.power_ratio, power, "", f"{row.watts[0]:g} W / {row.watts[1]:g} W"
    )
    yield Comparison(
        f"{row.workload}: performance per watt",
        row.per_watt,
        performance_per_watt(speedup, power),
        "",
        "equation 1: speedup / power ratio",
    )
    yield Comparison(f"{row.workload}: performance per $", row.per_dollar, speedup / cost, "", cost_formula)


def _prices(speedup: float, per_dollar: str) -> tuple[float, float]:
    """Price ratios from which the printed digits come, by rounding or by cutting off."""
    decimals = len(per_dollar.partition(".")[2])
    step, value = 10.0**-decimals, float(per_dollar)
    return speedup / (value + step), speedup / (value - step / 2)
