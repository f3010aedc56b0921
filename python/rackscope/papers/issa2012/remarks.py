"""What reproducing Issa 2012 showed: claims that were checked, each with the numbers that decide."""

from __future__ import annotations

import math

from rackscope.papers.issa2012 import printed
from rackscope.papers.issa2012.equations import path_length_through, power_through
from rackscope.papers.issa2012.projections import (
    WORDCOUNT,
    measured_path_lengths,
    memcached_line,
    wordcount_projections,
)
from rackscope.papers.issa2012.tables import speedups_of_table_2
from rackscope.papers.reproduction import Remark


def remarks() -> tuple[Remark, ...]:
    """All of them, those that bear on using the models first."""
    atom, wsm = memcached_line("ATOM"), memcached_line("WSM")
    points = measured_path_lengths()
    fitted = path_length_through(points[0][1], points[0][2], points[1][1], points[1][2])
    d510 = wordcount_projections()[0]
    instructions = printed.BLOCK_BYTES * d510.instructions_per_byte
    fixed = power_through(100, 2e9, 115, 2.5e9, -1.0).fixed_watts
    zero = 2.0 * (fixed - 100) / fixed
    rows = wordcount_projections()
    usual = ", ".join(f"{one.usual_error_percent:.2f} %" for one in rows)
    stated = ", ".join(f"{one.row.error_percent} %" for one in rows)
    cost = printed.TABLE_3_DOLLARS[0] / printed.TABLE_3_DOLLARS[1]
    named = dict(zip((row.workload for row in printed.TABLE_3), speedups_of_table_2(), strict=True))
    solved = ", ".join(f"{one.cpi:.2f}" for one in wordcount_projections())
    d525 = wordcount_projections()[1]
    slower = d525.solved_cpi * printed.ATOM_D525_OTHER_MEGAHERTZ / printed.ATOM_D525.frequency_megahertz
    parts = []
    for name, table in (("word count", printed.TABLE_9), ("word sort", printed.TABLE_10)):
        clock = math.log(table[1].processor.frequency_megahertz / table[0].processor.frequency_megahertz)
        measured = math.log(table[0].measured_seconds / table[1].measured_seconds) / clock
        projected = math.log(float(table[0].projected_seconds) / float(table[1].projected_seconds)) / clock
        parts.append(f"{name} {measured:.2f} measured and {projected:.2f} projected")
    watts = ", ".join(f"{row.watts[0]:g}" for row in printed.TABLE_4)
    sort = printed.TABLE_2[0]
    assert sort.tasks_per_minute is not None
    nhm_tasks, atom_tasks = (rate * time / 60 for rate, time in zip(sort.tasks_per_minute, sort.seconds, strict=True))
    return (
        Remark(
            "cpi-falls-with-frequency",
            "The printed CPI line falls with frequency",
            f"With the printed signs ATOM needs {atom.cpi(1660):.2f} cycles an instruction at 1,660 MHz and "
            f"{atom.cpi(3000):.2f} at 3,000 MHz. Memory answers in nanoseconds, not in cycles: a faster clock spends "
            "more cycles on the same wait, so that CPI rises or stays. On the line throughput grows by "
            f"{atom.throughput_elasticity(1800):.2f} % for 1 % of clock on ATOM at 1,800 MHz "
            f"({wsm.throughput_elasticity(2270):.2f} % on WSM at 2,270 MHz), more than the clock itself could give, "
            f"and it stops altogether at {atom.lowest_megahertz:.0f} MHz ({wsm.lowest_megahertz:.0f} MHz). The form "
            "1/y = a + b/f is Amdahl's for a score that rises with frequency; CPI is not such a score. The bounds 3.28 "
            "and 1.98 are limits of that form only. rackscope reproduces the lines and projects nothing with them.",
        ),
        Remark(
            "negative-path-length",
            "Path length turns negative beyond nine cores",
            f"-31,500 ln(cores) + 70,702 is zero at {WORDCOUNT.zero_cores:.2f} cores and {WORDCOUNT.at(10):,.0f} "
            "instructions a byte at ten: a job that ends before it starts. The sign of a also contradicts the text, "
            "which has instructions grow with processes. Equation 2, solved for path length with the measured seconds "
            f"and CPI of the two processors, gives {points[0][2]:,.0f} at two cores and {points[1][2]:,.0f} at four, "
            f"and the line through these two has a = {fitted.a:,.0f} and b = {fitted.b:,.0f}, near the printed "
            "constants. So the logarithm of cores stands for all in which an ATOM and a Xeon differ. rackscope refuses "
            "a path length at or below zero.",
        ),
        Remark(
            "block-size",
            "128 MB is a block size, not the size of the data",
            "Equation 2 multiplies by 128 MB, which the paper elsewhere names as the block size that the file system "
            f"was set to. With it word count takes {d510.instructions_per_byte:,.0f} instructions for each byte: "
            f"{instructions:.2e} on a server. Over inputs of 10 to 50 GB, of which figures 3 and 4 speak, that would "
            f"be {instructions / 10e9:.0f} to {instructions / 50e9:.0f} a byte. The time of a job does not double "
            "because its blocks do, and the equation knows nothing of the input. It gives the printed times because "
            "path length was fitted with the same constant.",
        ),
        Remark(
            "power-form",
            "Equations 5 and 6 are the form for time, not for power",
            "P0 + (P1 - P0) f1/f tends to P0 as frequency grows: right for time, of which a part does not scale. "
            "Equation 6 is equation 5 solved at a second point, so the two agree with each other. But with power that "
            "rises (P2 > P1 at f2 > f1) P0 - P2 = f1 (P2 - P1)/(f2 - f1) is above zero: the part said not to scale is "
            "more than was ever measured, and the curve flattens towards it. Through 100 W at 2 GHz and 115 W at 2.5 "
            f"GHz it is {fixed:.0f} W, and below {zero:.2f} GHz power is negative. Equation 4, with voltage in "
            "proportion to frequency as the paper assumes, leads to P = P0 + (P1 - P0)(f/f1)^n with n = 3 (n = 1 at a "
            "fixed voltage): that is the form in rackscope's own model of power.",
        ),
        Remark(
            "errors-over-projection",
            "The percent errors of tables 9 and 10 divide by the projection",
            f"Table 9 prints {stated}. Those come from the unrounded projections by dividing the gap by the "
            f"projection. By what was measured, as is usual, they are {usual}: all still below 10 %, the largest "
            "larger. In table 10 the printed whole seconds leave both open for the D510 and for NHM; for the D525 only "
            "the projection gives 4.36 % (by what was measured it is at least 4.53 %).",
        ),
        Remark(
            "per-dollar",
            "Table 3's performance per dollar does not follow from its prices",
            f"$7300/$650 is {cost:.2f}; speedup over that is {named['Wordcount'] / cost:.2f} for word count (printed "
            f"1.05) and {named['Kmeans'] / cost:.2f} for k-means (1.04). The three others are printed to one digit, to "
            "which they round. No other pair of prices mends it: word count asks for a ratio of "
            f"{named['Wordcount'] / 1.06:.2f} to {named['Wordcount'] / 1.045:.2f}, k-means for "
            f"{named['Kmeans'] / 1.05:.2f} to {named['Kmeans'] / 1.035:.2f}. Table 4's follows from its own prices "
            "throughout.",
        ),
        Remark(
            "unprinted-cpi",
            "What table 9 rests on is not printed",
            "Neither the CPI of word count over frequency (only as a curve, figure 14) nor the efficiency is given. An "
            f"efficiency of 1 and a CPI of {solved} give the projected times within 0.03 % and the errors to the "
            "digit, so these must have been used. They are solved for, not predicted: reproducing table 9 shows that "
            "equation 2 was evaluated as stated, not that it predicts.",
        ),
        Remark(
            "clock-of-the-d525",
            "The ATOM D525 has two clocks",
            "Tables 9 and 10 put it at 1.88 GHz, table 6 and the text at 1.80 GHz. Table 9 was computed with 1.88: its "
            f"CPI then solves to {d525.solved_cpi:.4f}, a number of two decimals as the others are; with 1.80 to "
            f"{slower:.4f}. With the same CPI at 1.80 GHz the projection would be 4.4 % longer.",
        ),
        Remark(
            "not-a-frequency-effect",
            "From the D510 to the D525 more than the clock changed",
            f"Speed gained for 1 % of clock between the two: {'; '.join(parts)}. The clock alone gives at most 1. What "
            "else differs between the two servers (memory, for one) is in these numbers, so they do not test a "
            "projection over frequency. rackscope's own models refuse a projection over a resource when the elasticity "
            "is outside 0 to 1.",
        ),
        Remark(
            "no-error-stated",
            "Two points determine each line, and the lines are judged on the points",
            "A line through two points leaves nothing to tell an error from. As far as the paper tells, the processors "
            "of tables 9 and 10 are also those from which cores, CPI and frequency were fitted: then the errors below "
            "10 % are errors of fit. An error of prediction takes points that were left out, and none are said to be.",
        ),
        Remark(
            "shared-numbers",
            "Table 4 shares its numbers with other tables",
            f"WSM's watts of table 4 ({watts}) are NHM's of table 3 before rounding, within 1.2 %, and ATOM's too, "
            "though WSM is another processor with other times. Its word sort takes 793.0 s and 2948 s, which are table "
            "10's projections for NHM and the ATOM D510 (793; 2947 with its fraction cut off). Performance per watt of "
            "table 4 is thus of doubtful origin, though it follows from what is printed.",
        ),
        Remark(
            "two-speedups",
            "Table 2's two speedups count different work",
            f"Tasks a minute times minutes is {nhm_tasks:,.0f} tasks of word sort on NHM and {atom_tasks:,.0f} on "
            f"ATOM: the jobs were split differently, so that a task is not the same on both, and {sort.tasks_speedup} "
            f"in tasks stands beside {sort.speedup} in time for one job. For word count the two agree within 1 %. Time "
            "is what the other tables use.",
        ),
        Remark(
            "wording",
            "Where the text says the reverse",
            "Below table 2 a lower speedup in latency is called better, where the numbers are times of ATOM over NHM "
            "and higher is better; the conclusion wants performance per watt and per dollar to be minimised, where the "
            "text before has them maximised.",
        ),
    )
