"""The CPI lines, the path length, tables 9 and 10, and the power that equations 5 and 6 give."""

from __future__ import annotations

from dataclasses import dataclass

from rackscope.papers.issa2012 import printed
from rackscope.papers.issa2012.equations import (
    CpiLine,
    PathLength,
    cpi_line_through,
    execution_seconds,
    other_factor,
    path_length_through,
    power_through,
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
        solved = other_factor(processor, float(row.projected_seconds), instructions)
        cpi = round(solved, 2)
        projections.append(Wordcount(row, instructions, solved, cpi, execution_seconds(processor, cpi, instructions)))
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
    rows = ((printed.TABLE_9[0], atom_cpi), (printed.TABLE_9[2], nhm_cpi))
    return tuple(
        (row.processor.name, row.processor.cores, other_factor(row.processor, row.measured_seconds, cpi))
        for row, cpi in rows
    )


def table_9() -> Section:
    """Word count: projected seconds by equation 2, and their errors."""
    comparisons = []
    for one in wordcount_projections():
        name, printed_error = one.row.processor.name, one.row.error_percent
        formula = (
            f"equation 2: 128e6 x {one.cpi:.2f} x {one.instructions_per_byte:.1f} / "
            f"{one.row.processor.frequency_megahertz:g}e6 / {one.row.processor.cores}"
        )
        usual = one.usual_error_percent
        comparisons += [
            Comparison(f"{name}: projected time", one.row.projected_seconds, one.seconds, "s", formula),
            Comparison(f"{name}: error", printed_error, one.error_percent, "%", "gap / projected time"),
            Comparison(f"{name}: error, as usual", printed_error, usual, "%", "gap / measured time", counted=False),
        ]
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
        name, error, usual = row.processor.name, 100 * gap / projected, 100 * gap / row.measured_seconds
        # The whole second that is printed may have had up to another second behind the point.
        ends = error, 100 * (gap + 1) / (projected + 1)
        comparisons += [
            Comparison(f"{name}: error", row.error_percent, error, "%", "gap / projected time", attainable=ends),
            Comparison(f"{name}: error, as usual", row.error_percent, usual, "%", "gap / measured time", counted=False),
        ]
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
    d510, d525, nhm = ((row.processor, float(row.projected_seconds)) for row in printed.TABLE_10)
    lengths = other_factor(*d510, atom_cpi), other_factor(*nhm, nhm_cpi)
    fitted = path_length_through(printed.ATOM_D510.cores, lengths[0], printed.NHM.cores, lengths[1])
    return DerivedTable(
        "What table 10's projected times would take, with the CPI of table 5 (solved for: no check of anything)",
        ("quantity", "value"),
        (
            ("instructions per byte at 2 cores", round(lengths[0])),
            ("instructions per byte at 4 cores", round(lengths[1])),
            ("a of equation 3", round(fitted.a)),
            ("b of equation 3", round(fitted.b)),
            ("CPI of ATOM at 1,880 MHz", round(other_factor(*d525, lengths[0]), 2)),
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
            execution_seconds(atom.row.processor, atom_cpi, atom.instructions_per_byte),
            "-",
            execution_seconds(nhm.row.processor, nhm_cpi, nhm.instructions_per_byte),
        ),
        ("with 128 MiB for 128 MB", *(one.seconds * 2**27 / printed.BLOCK_BYTES for one in (atom, d525, nhm))),
        ("with the D525 at 1,800 MHz", "-", execution_seconds(slower, d525.cpi, d525.instructions_per_byte), "-"),
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
    as_printed, linear, cubic = forms = [power_through(*_EXAMPLE_WATTS, exponent) for exponent in (-1.0, 1.0, 3.0)]
    rows = [
        (gigahertz, *(form.at(gigahertz * 1e9) for form in forms))
        for gigahertz in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)
    ]
    derived = DerivedTable(
        "Watts over frequency through made-up points: 100 W at 2 GHz and 115 W at 2.5 GHz",
        ("GHz", "equations 5 and 6", "P0 + (P1 - P0)(f/f1)", "P0 + (P1 - P0)(f/f1)^3"),
        tuple(rows),
        f"P0 is {as_printed.fixed_watts:.1f} W by equation 6, {linear.fixed_watts:.1f} W with n = 1 and "
        f"{cubic.fixed_watts:.1f} W with n = 3.",
        (1, 1, 1, 1),
    )
    return Section(
        "power",
        "Equations 4 to 6: power",
        (),
        "No number that these equations give is printed: figure 15 shows throughput per watt as curves only.",
        (derived,),
    )
