"""Sevilla 2013: its systems, prices, rates and the conclusions that follow from them without its plots."""

from __future__ import annotations

from rackscope.papers.base import NOT_MEASURED, Paper
from rackscope.papers.reproduction import Comparison, DerivedTable, Remark, Reproduction, Section
from rackscope.papers.sevilla2013 import printed

_NODE_CORES = printed.NODE_PROCESSORS * printed.NODE_CORES_A_PROCESSOR
_CLUSTER_CORES = printed.NODES * _NODE_CORES
_CLUSTER_DOLLARS = printed.NODES * printed.NODE_DOLLARS


def reproduce() -> Reproduction:
    """Every number of the text that follows from others, and what the paper concludes from them."""
    return Reproduction(
        sections=(_systems(), _ratios(), _rates(), _price()),
        remarks=_remarks(),
    )


def amdahl(cores: int, sequential_share: float) -> float:
    """Speedup of a job on ``cores`` over one (Amdahl 1967)."""
    return 1 / (sequential_share + (1 - sequential_share) / cores)


def _systems() -> Section:
    own = printed.PROCESSORS * printed.CORES_A_PROCESSOR * printed.THREADS_A_CORE
    memory, nodes = printed.NODES * printed.NODE_MEMORY_GIGABYTES, printed.CONTEXTS / _NODE_CORES
    eight = "2 processors of eight cores x 2 threads"
    return Section(
        "systems",
        "Section 3: the two systems",
        (
            Comparison("cluster: cores of a node", "4", _NODE_CORES, "", "2 dual-core processors"),
            Comparison("cluster: cores (figure 2)", "128", _CLUSTER_CORES, "", "32 nodes of 4"),
            Comparison("cluster: memory (figure 2)", "256", memory, "GB", "32 x 8 GB"),
            Comparison("server: hardware contexts", "32", own, "", "2 quad-core processors x 2 threads a core"),
            Comparison("server: hardware contexts", "32", 2 * 8 * 2, "", eight, counted=False),
            Comparison("nodes with as many cores as the server", "8", nodes, "", "32 contexts / 4"),
            Comparison(
                "two hyperthreads of all compute power", "6.25", 100 * 2 / printed.CONTEXTS, "%", "2 / 32 contexts"
            ),
        ),
    )


def _ratios() -> Section:
    comparisons = [
        Comparison(f"{name}: memory to cores", ratio, gigabytes / cores, "", f"{gigabytes} GB / {cores} cores")
        for name, ratio, cores, gigabytes in printed.RATIOS
    ]
    name, ratio, cores, gigabytes = printed.RATIOS[0]
    other = Comparison(
        f"{name}: cores to memory", ratio, cores / gigabytes, "", f"{cores} cores / {gigabytes} GB", counted=False
    )
    return Section(
        "figure-1",
        "Figure 1: memory for each core",
        (*comparisons, other),
        note="The table is damaged in the text that we have: a line is lost, and cells may have moved.",
    )


def _rates() -> Section:
    word_count = printed.WORD_COUNT_GIGABYTES * 1e3 / printed.CHECKPOINT_SECONDS
    terasort = printed.TERASORT_GIGABYTES * 1e3
    xen = printed.MEMORY_GIGABYTES * 1e3 / printed.XEN_SECONDS
    rows = (
        ("Phoenix word count, one server (125 GB in 5 min)", word_count, word_count / printed.CONTEXTS),
        ("Terasort, 32 nodes, tuned (80 GB in 5 min)", terasort / 300, terasort / 300 / _CLUSTER_CORES),
        ("Terasort, 32 nodes, defaults (80 GB in 3 h)", terasort / 10800, terasort / 10800 / _CLUSTER_CORES),
        ("Xen checkpoint, one server (256 GB in 40 min)", xen, xen / printed.CONTEXTS),
        (
            "STREAM copy, 32 nodes over one server",
            printed.NODES * printed.NODE_COPY_MEGABYTES_PER_SECOND / printed.COPY_MEGABYTES_PER_SECOND,
            "ratio",
        ),
    )
    return Section(
        "rates",
        "Sections 3 to 5: rates that the text gives",
        (),
        derived=(
            DerivedTable(
                "Megabytes a second (10^6), which the paper does not print",
                ("what", "MB/s", "MB/s a core or context"),
                rows,
                "The two jobs are not one: the rates do not say which system is faster.",
                (None, 1, 1),
            ),
        ),
    )


def _price() -> Section:
    share = printed.SEQUENTIAL_SHARE
    up, out = printed.DOLLARS, printed.NODE_DOLLARS
    each = (
        ("price, $", up, _CLUSTER_DOLLARS),
        ("$ for a GB of memory", up / printed.MEMORY_GIGABYTES, out / printed.NODE_MEMORY_GIGABYTES),
        ("$ for a core or context", up / printed.CONTEXTS, out / _NODE_CORES),
        (
            "speedup of word count over one core, at most",
            amdahl(printed.CONTEXTS, share),
            amdahl(_CLUSTER_CORES, share),
        ),
    )
    rows = tuple((what, server, cluster, cluster / server) for what, server, cluster in each)
    return Section(
        "price",
        "Section 4: what each system costs",
        (),
        derived=(
            DerivedTable(
                "From $9000 for the server and $2000 for each of 32 nodes",
                ("what", "one server", "cluster", "cluster / server"),
                rows,
                "Prices of purchase only, of different years: the nodes were about six years old.",
                (None, 2, 2, 2),
            ),
        ),
    )


def _remarks() -> tuple[Remark, ...]:
    """What was found out, the paper's conclusions first."""
    ratio = _CLUSTER_DOLLARS / printed.DOLLARS
    most = amdahl(_CLUSTER_CORES, printed.SEQUENTIAL_SHARE) / amdahl(printed.CONTEXTS, printed.SEQUENTIAL_SHARE)
    copies = printed.NODES * printed.NODE_COPY_MEGABYTES_PER_SECOND / printed.COPY_MEGABYTES_PER_SECOND
    nodes = printed.DOLLARS / printed.NODE_DOLLARS
    rate = printed.MEMORY_GIGABYTES / printed.XEN_SECONDS
    word_count = printed.WORD_COUNT_GIGABYTES / printed.CHECKPOINT_SECONDS
    whole = printed.MEMORY_GIGABYTES / word_count
    factor = printed.TERASORT_DEFAULT_SECONDS / printed.TERASORT_TUNED_SECONDS
    return (
        Remark(
            "cheaper",
            "That scale-up costs less follows for word count, whatever the plots say",
            f"The cluster costs {ratio:.2f} times as much, so that a job is cheaper on it only where it is {ratio:.2f} "
            "times as fast. With 1 % of word count sequential (the paper's number), 128 cores are at most "
            f"{most:.2f} times as fast as 32 like them, and the cluster's were the older ones: each would have to be "
            f"{ratio / most:.2f} times as fast as one of the server's. Power is not in it; it would count against 32 "
            "nodes.",
        ),
        Remark(
            "faster",
            "That scale-up is faster (figure 2) cannot be recomputed, only bounded",
            "The times are in the plot alone. What the text gives says how large the claim is: the cluster has four "
            f"times the contexts and {copies:.1f} times the memory bandwidth of the server, and could be {most:.2f} "
            "times as fast if its cores were as fast and nothing had to be sent. For the server to win, Hadoop, the "
            f"network and six years of age must together cost more than a factor of {most:.2f}.",
        ),
        Remark(
            "equal-cost",
            "Equal memory was compared, not equal cost",
            "The systems were chosen for the same 256 GB. For the price of the server there are "
            f"{nodes:.1f} nodes, with {nodes * _NODE_CORES:.0f} cores and {nodes * printed.NODE_MEMORY_GIGABYTES:.0f} "
            "GB. The paper quotes a study of equal cost ($200,000 each) in which scale-out was up to 4 times as fast, "
            "and one in which a large server gained little beyond 32 processors: which wins is a matter of the job and "
            "of prices. `rackscope advise scale` therefore compares by cost, and projects no server past the knee of "
            "its cores.",
        ),
        Remark(
            "contexts",
            "Two quad-core processors with hyperthreading have 16 hardware contexts, not 32",
            "That the cluster would shrink to 8 nodes with as many cores, and that two hyperthreads are 6.25 % of all, "
            "need 32: so either the processors had eight cores, or there were four of them. Everything here takes 32.",
        ),
        Remark(
            "checkpoints",
            "Checkpoints at the rate of Xen's do not fit into their interval",
            f"256 GB in 40 minutes are {rate * 1e3:.0f} MB/s, and word count at {word_count * 1e3:.0f} MB/s takes "
            f"{whole / 60:.1f} minutes over 256 GB: that such a checkpoint takes longer than the computation follows. "
            f"But DMTCP's are called as large as the input, and at that rate 125 GB take "
            f"{printed.WORD_COUNT_GIGABYTES / rate / 60:.0f} minutes of an interval of 5: for word count, which is "
            "said to scale well with several checkpoints, they must have been smaller or written faster. For sort the "
            f"paper sees what follows: the interval runs out. A regular server's 2 minutes would be {rate * 120:.0f} "
            "GB.",
        ),
        Remark(
            "configuration",
            "Configuration is worth more than the architecture",
            f"Terasort of 80 GB took three hours with defaults and five minutes tuned, a factor of {factor:.0f}: more "
            "than the difference in price and in cores together could make up. `rackscope advise scale` compares what "
            "was measured, and a job that was measured with defaults is compared with its defaults.",
        ),
        Remark(
            "not-reproduced",
            "What cannot be reproduced",
            "Times over the size of data (figures 2, 4 and 7), the place of the wall (figure 1: memory, for M1 to M4), "
            "CPU and swap over time (figures 8 and 9) and the seconds that portability gains (figure 10, about 2 of an "
            "axis of 16) are in plots only. No memory for each byte of data is printed, so that the wall cannot be "
            "placed; no size is given at which scale-out would win. Availability and more resources are future work in "
            "the paper, and no part of the comparison here either: time and money are.",
        ),
    )


PAPER = Paper(
    name="sevilla2013",
    title="scale-up against scale-out",
    citation=printed.CITATION,
    shows=(
        "The paper's times are in plots alone, which carry no numbers: what can be checked is what its text says. "
        "`rackscope advise scale` asks the paper's question of your own measurements."
    ),
    make=lambda _measured, _say: reproduce().content(),
    figures=(
        ("Figure 1", "the wall: time over the size of data", "`rackscope study wall redis ycsb-b --memory 256m`"),
        ("Figures 2 and 7", "word count, sort and k-means: sequential, Phoenix and Hadoop", NOT_MEASURED),
        ("Figures 4 and 9", "what checkpoints cost", NOT_MEASURED),
        ("Figure 8", "what parallelism gains", NOT_MEASURED),
        ("Figure 10", "what tuning to the hardware gains", NOT_MEASURED),
    ),
    studies=("wall",),
)
