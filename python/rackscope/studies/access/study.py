"""``study access``: EREW against CREW against CRCW in process, over cores, skew and write share."""

from __future__ import annotations

from rackscope.studies.base import Option, Study, later

STUDY = Study(
    name="access",
    help="compare the access modes EREW, CREW and CRCW of a partitioned store, without a network",
    description=(
        "Measures the partitions of the cache engine without sockets. A core accesses only its own partition (EREW),\n"
        "reads all partitions and writes its own (CREW), or reads and writes all of them (CRCW). Varies the number of\n"
        "cores, the key distribution (uniform, zipfian) and the percentage of writes. All values read are checked.\n"
        "All combinations are measured in turns, round after round. With --peers, structures by others are asked for\n"
        "the same: a concurrent hash table (papaya) and a trie of B+-trees (the crate masstree).\n\n"
        "Examples:\n"
        "  rackscope study access\n"
        "  rackscope study access --cores 2 --writes 50 --items 4m --repetitions 12\n"
        "  rackscope study access --peers"
    ),
    conduct=later("access.conduct:conduct"),
    subject="none",
    options=(
        Option("items", "count", "items of 8 + 8 bytes in each store (default 16m, or what memory has memory for)"),
        Option("cores", "text", "numbers of cores to measure with (default: 1, 2, 4, ... up to all)", metavar="N,N"),
        Option("writes", "text", "percentages of writes", "0,5,50,100", metavar="N,N"),
        Option("peers", "flag", "measure structures by others too"),
        Option("window", "duration", "length of one measurement", "400ms"),
        Option("repetitions", "count", "rounds over all combinations", "7"),
        Option("budget", "duration", "time for all rounds, without filling the stores", "10m"),
    ),
    title=lambda _: "EREW, CREW and CRCW in process",
    check=later("access.conduct:build_plan"),
)
