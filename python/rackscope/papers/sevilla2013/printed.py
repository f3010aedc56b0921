"""What Sevilla 2013 prints in its text and tables. Nothing here is ours; its plots carry no numbers."""

from __future__ import annotations

CITATION = (
    "M. Sevilla, Quantifying the difference between scale-out and up (masters project, rough draft), University of "
    "California, Santa Cruz, 2013"
)

#: Section 3: the cluster, and one of its nodes.
NODES = 32
NODE_PROCESSORS, NODE_CORES_A_PROCESSOR = 2, 2
NODE_MEMORY_GIGABYTES = 8
NODE_COPY_MEGABYTES_PER_SECOND = 2343
#: Section 3: the one large server.
PROCESSORS, CORES_A_PROCESSOR, THREADS_A_CORE = 2, 4, 2
CONTEXTS = 32
MEMORY_GIGABYTES = 256
COPY_MEGABYTES_PER_SECOND = 11472
#: Section 4: what the authors paid.
DOLLARS, NODE_DOLLARS = 9000, 2000

#: Section 3: Terasort of so much with Hadoop's defaults, and with larger blocks and more reducers.
TERASORT_GIGABYTES, TERASORT_DEFAULT_SECONDS, TERASORT_TUNED_SECONDS = 80, 3 * 3600, 5 * 60
#: Section 5.2: word count with Phoenix begins to take longer than the interval of checkpoints at this size.
WORD_COUNT_GIGABYTES, CHECKPOINT_SECONDS = 125, 5 * 60
#: Section 4.2: Xen's checkpoint of the large server and of one of a regular size, which is not given.
XEN_SECONDS, XEN_REGULAR_SECONDS = 40 * 60, 2 * 60
#: Section 3.3: the part of word count that is sequential.
SEQUENTIAL_SHARE = 0.01
#: The table of figure 1: ratio as printed, cores, gigabytes. The line of M3 is lost in the text that we have.
RATIOS = (("M1", "0.5", 4, 8), ("M2", "1.5", 8, 12), ("M4", "2.5", 4, 10))
