"""The CPI lines, the path length, tables 9 and 10, and the power that equations 5 and 6 give."""

from __future__ import annotations

from dataclasses import dataclass

from rackscope.papers.issa2012 import printed
from rackscope.papers.issa2012.equations import (
    CpiLine,
    PathLength,
    cpi_from_time,
    cpi_line_through,
    execution_seconds,
    instructions_per_byte_from_time,
    path_length_through,
    printed_fixed_watts,
    printed_power_watts,
    scaled_fixed_watts,
    scaled_power_watts,
)
from rackscope.papers.issa2012.printed import Processor, ProjectionRow
from rackscope.papers.reproduction import Comparison, DerivedTable, Section

WORDCOUNT = PathLength(*printed.WORDCOUNT_PATH_LENGTH)
_CURVE_MEGAHERTZ = (1000, 1200, 1400, 1660, 1800, 1880, 2000, 2270, 2500, 2930, 3000)
#: Made up, to show what the forms do: the paper prints no watts at two frequencies of one server.
_EXAMPLE_WATTS = (100.0, 2.0e9, 115.0, 2.5e9)


def memcached_line(name: str) -> CpiLine:
    """The printed line of ``ATOM`` or ``WSM``."""
    intercept, slope, _ = printed.MEMCACHED_LINES[name]
    return CpiLine(intercept, slope)


@dataclass(frozen=True)
class Wordcount:
    """A column of table 9 by equation 2: the CPI that its projection asks for, as solved and to two decimals."""

    row: ProjectionRow
    instructions_per_byte: float
    solved_cpi: float
    cpi: float
    seconds: float

    @property
    def error_percent(self) -> float:
        """Against what was measured, over the projection: as the paper computes it."""
        return 100 * abs(self.seconds - self.row.measured_seconds) / self.seconds

    @property
    def usual_error_percent(self) -> float:
        """The same, over what was measured."""
        return 100 * abs(self.seconds - self.row.measured_seconds) / self.row.measured_seconds


def wordcount_projections() -> tuple[Wordcount, ...]:
    """Table 9. The paper does not print the CPI that it put into equation 2: it is solved for, and then rounded."""
    projections = []
    for row in printed.TABLE_9:
        processor = row.processor
        instructions = WORDCOUNT.instructions_per_byte(processor.cores)
        solved = cpi_from_time(
            seconds=float(row.projected_seconds),
            data_bytes=printed.BLOCK_BYTES,
            instructions_per_byte=instructions,
            frequency_hertz=processor.frequency_megahertz * 1e6,
            cores=processor.cores,
        )
        cpi = round(solved, 2)
        projections.append(Wordcount(row, instructions, solved, cpi, _seconds(processor, cpi, instructions)))
    return tuple(projections)


def cpi_regression() -> Section:
    """Bounds of the memcached lines, and the lines over frequency."""
    comparisons = []
    for name, (_, _, bound) in printed.MEMCACHED_LINES.items():
        line = memcached_line(name)
        comparisons.append(
            Comparison(f"{name}: bound of CPI", bound, line.limit_cpi, "cycles/instruction", f"1 / {line.intercept:g}")
        )
    atom, wsm = memcached_line("ATOM"), memcached_line("WSM")
    curve = DerivedTable(
        "CPI over frequency by the printed lines (the curves of figure 13), and how throughput would answer the clock",
        ("MHz", "CPI of ATOM", "its elasticity", "CPI of WSM", "its elasticity"),
        tuple(
            (
                frequency,
                atom.cpi(frequency),
                atom.throughput_elasticity(frequency),
                wsm.cpi(frequency),
                wsm.throughput_elasticity(frequency),
            )
            for frequency in _CURVE_MEGAHERTZ
        ),
        f"At and below {atom.lowest_megahertz:.0f} MHz (ATOM) and {wsm.lowest_megahertz:.0f} MHz (WSM) the lines have "
        "no value. Elasticity is d ln(frequency/CPI) / d ln(frequency).",
        (0, 2, 2, 2, 2),
    )
    return Section(
        "cpi-regression",
        "The CPI regression: 1/CPI = intercept + slope / MHz",
        tuple(comparisons),
        "The printed x is 1/f with f in MHz: only then do the lines pass through the CPI of table 6. The two points "
        "that fitted each line are not printed.",
        (curve,),
    )


def path_length() -> Section:
    """Equation 3 with the constants for word count."""
    points = measured_path_lengths()
    fitted = path_length_through(points[0][1], points[0][2], points[1][1], points[1][2])
    over_cores = DerivedTable(
        "Instructions per byte of word count over cores",
        ("cores", "by the printed constants", "by the line through the two measured points"),
        tuple((cores, round(WORDCOUNT.at(cores)), round(fitted.at(cores))) for cores in (1, 2, 4, 6, 8, 9, 10, 12, 16)),
        f"Zero is crossed at {WORDCOUNT.zero_cores:.2f} cores by the printed constants.",
    )
    measured = DerivedTable(
        "Where such a line comes from: equation 2 solved for the path length",
        ("processor", "cores", "instructions per byte"),
        tuple((name, cores, round(value)) for name, cores, value in points),
        f"From the measured seconds of table 9 and CPI of table 5; through them goes a = {fitted.a:,.0f}, "
        f"b = {fitted.b:,.0f}, beside the printed -31,500 and 70,702.",
    )
    return Section(
        "path-length", "Equation 3: path length", (), "No value of equation 3 is printed.", (over_cores, measured)
    )


def measured_path_lengths() -> tuple[tuple[str, int, float], ...]:
    """Processor, cores and instructions per byte of word count, from measured seconds and measured CPI."""
    nhm_cpi, atom_cpi = printed.TABLE_5_CPI["Wordcount"]
    return tuple(
        (
            row.processor.name,
            row.processor.cores,
            instructions_per_byte_from_time(
                seconds=row.measured_seconds,
                data_bytes=printed.BLOCK_BYTES,
                cpi=cpi,
                frequency_hertz=row.processor.frequency_megahertz * 1e6,
                cores=row.processor.cores,
            ),
        )
        for row, cpi in ((printed.TABLE_9[0], atom_cpi), (printed.TABLE_9[2], nhm_cpi))
    )


def table_9() -> Section:
    """Word count: projected seconds by equation 2, and their errors."""
    comparisons = []
    for one in wordcount_projections():
        name = one.row.processor.name
        comparisons.append(
            Comparison(
                f"{name}: projected time",
                one.row.projected_seconds,
                one.seconds,
                "s",
                f"equation 2: 128e6 x {one.cpi:.2f} x {one.instructions_per_byte:.1f} / "
                f"{one.row.processor.frequency_megahertz:g}e6 / "
                f"{one.row.processor.cores}",
            )
        )
        comparisons.append(
            Comparison(f"{name}: error", one.row.error_percent, one.error_percent, "%", "gap / projected time")
        )
        comparisons.append(
            Comparison(
                f"{name}: error, as usual",
                one.row.error_percent,
                one.usual_error_percent,
                "%",
                "gap / measured time",
                counted=False,
            )
        )
    return Section(
        "table-9",
        "Table 9: word count, projected by equation 2",
        tuple(comparisons),
        "The CPI that went in is not printed. It is solved for here from the projected time; in all three columns it "
        "comes to two decimals, and with those the errors come out to the digit.",
        (_other_readings(), _solved_cpi()),
    )


def table_10() -> Section:
    """Word sort: the errors. Its path length is not printed, so that its times cannot be computed."""
    comparisons = []
    for row in printed.TABLE_10:
        projected = float(row.projected_seconds)
        gap = abs(projected - row.measured_seconds)
        name = row.processor.name
        # The whole second that is printed may have had up to another second behind the point.
        comparisons.append(
            Comparison(
                f"{name}: error",
                row.error_percent,
                100 * gap / projected,
                "%",
                "gap / projected time",
                attainable=(100 * gap / projected, 100 * (gap + 1) / (projected + 1)),
            )
        )
        comparisons.append(
            Comparison(
                f"{name}: error, as usual",
                row.error_percent,
                100 * gap / row.measured_seconds,
                "%",
                "gap / measured time",
                counted=False,
            )
        )
    return Section(
        "table-10",
        "Table 10: word sort",
        tuple(comparisons),
        "Word sort's path length and CPI over frequency are not printed: its projected times cannot be computed from "
        "the paper, only what they would take. Their fractions of a second were cut off.",
        (_word_sort_needs(),),
    )


def _word_sort_needs() -> DerivedTable:
    nhm_cpi, atom_cpi = printed.TABLE_5_CPI["Wordsort"]
    lengths = [
        instructions_per_byte_from_time(
            seconds=float(row.projected_seconds),
            data_bytes=printed.BLOCK_BYTES,
            cpi=cpi,
            frequency_hertz=row.processor.frequency_megahertz * 1e6,
            cores=row.processor.cores,
        )
        for row, cpi in ((printed.TABLE_10[0], atom_cpi), (printed.TABLE_10[2], nhm_cpi))
    ]
    fitted = path_length_through(printed.ATOM_D510.cores, lengths[0], printed.NHM.cores, lengths[1])
    cpi = cpi_from_time(
        seconds=float(printed.TABLE_10[1].projected_seconds),
        data_bytes=printed.BLOCK_BYTES,
        instructions_per_byte=lengths[0],
        frequency_hertz=printed.ATOM_D525.frequency_megahertz * 1e6,
        cores=printed.ATOM_D525.cores,
    )
    return DerivedTable(
        "What table 10's projected times would take, with the CPI of table 5 (solved for: no check of anything)",
        ("quantity", "value"),
        (
            ("instructions per byte at 2 cores", round(lengths[0])),
            ("instructions per byte at 4 cores", round(lengths[1])),
            ("a of equation 3", round(fitted.a)),
            ("b of equation 3", round(fitted.b)),
            ("CPI of ATOM at 1,880 MHz", round(cpi, 2)),
        ),
        f"Such a path length would be negative below {fitted.zero_cores:.2f} cores.",
    )


def _other_readings() -> DerivedTable:
    """What equation 2 gives when its inputs are read in other ways."""
    nhm_cpi, atom_cpi = printed.TABLE_5_CPI["Wordcount"]
    atom, d525, nhm = wordcount_projections()
    slower = Processor(d525.row.processor.name, printed.ATOM_D525_OTHER_MEGAHERTZ, d525.row.processor.cores)
    readings: tuple[tuple[str | float, ...], ...] = (
        ("as the paper must have computed it", atom.seconds, d525.seconds, nhm.seconds),
        (
            "with the measured CPI of table 5 (3.04 and 1.43)",
            _seconds(atom.row.processor, atom_cpi, atom.instructions_per_byte),
            "-",
            _seconds(nhm.row.processor, nhm_cpi, nhm.instructions_per_byte),
        ),
        ("with 128 MiB for 128 MB", *(one.seconds * 2**27 / printed.BLOCK_BYTES for one in (atom, d525, nhm))),
        ("with the D525 at 1,800 MHz", "-", _seconds(slower, d525.cpi, d525.instructions_per_byte), "-"),
        ("printed", *(float(one.row.projected_seconds) for one in (atom, d525, nhm))),
        ("measured", *(one.row.measured_seconds for one in (atom, d525, nhm))),
    )
    return DerivedTable(
        "Seconds of word count by equation 2, read in other ways",
        ("reading", "ATOM D510", "ATOM D525", "NHM X5570"),
        readings,
        decimals=(None, 1, 1, 1),
    )


def _solved_cpi() -> DerivedTable:
    projections = wordcount_projections()
    line = cpi_line_through(
        printed.ATOM_D510.frequency_megahertz,
        projections[0].cpi,
        printed.ATOM_D525.frequency_megahertz,
        projections[1].cpi,
    )
    return DerivedTable(
        "CPI that the projected times ask for",
        ("processor", "MHz", "solved", "to two decimals"),
        tuple(
            (one.row.processor.name, one.row.processor.frequency_megahertz, one.solved_cpi, one.cpi)
            for one in projections
        ),
        f"A line of the paper's kind through the two ATOMs: 1/CPI = {line.intercept:.3f} - "
        f"{-line.slope_megahertz:.0f}/MHz.",
        (None, 0, 4, 2),
    )


def power() -> Section:
    """Equations 4 to 6: no watts of them are printed; what the forms give for made-up watts."""
    watts, hertz, second_watts, second_hertz = _EXAMPLE_WATTS
    fixed = printed_fixed_watts(watts=watts, at_hertz=hertz, second_watts=second_watts, second_hertz=second_hertz)
    forms = []
    for exponent in (1.0, 3.0):
        base = scaled_fixed_watts(
            watts=watts, at_hertz=hertz, second_watts=second_watts, second_hertz=second_hertz, exponent=exponent
        )
        forms.append((exponent, base))
    rows = []
    for gigahertz in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0):
        frequency = gigahertz * 1e9
        as_printed = printed_power_watts(fixed_watts=fixed, watts=watts, at_hertz=hertz, frequency_hertz=frequency)
        others = [
            scaled_power_watts(
                fixed_watts=base, watts=watts, at_hertz=hertz, frequency_hertz=frequency, exponent=exponent
            )
            for exponent, base in forms
        ]
        rows.append((gigahertz, as_printed, *others))
    derived = DerivedTable(
        "Watts over frequency through made-up points: 100 W at 2 GHz and 115 W at 2.5 GHz",
        ("GHz", "equations 5 and 6", "P0 + (P1 - P0)(f/f1)", "P0 + (P1 - P0)(f/f1)^3"),
        tuple(rows),
        f"P0 is {fixed:.1f} W by equation 6, {forms[0][1]:.1f} W with n = 1 and {forms[1][1]:.1f} W with n = 3.",
        (1, 1, 1, 1),
    )
    return Section(
        "power",
        "Equations 4 to 6: power",
        (),
        "No number that these equations give is printed: figure 15 shows throughput per watt as curves only.",
        (derived,),
    )


def _seconds(processor: Processor, cpi: float, instructions_per_byte: float) -> float:
    return execution_seconds(
        data_bytes=printed.BLOCK_BYTES,
        cpi=cpi,
        instructions_per_byte=instructions_per_byte,
        frequency_hertz=processor.frequency_megahertz * 1e6,
        cores=processor.cores,
    )
