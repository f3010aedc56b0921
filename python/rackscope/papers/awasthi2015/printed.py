"""The tables of Awasthi 2015 and the numbers of its text; its plots (collectl) carry none. Nothing here is ours."""

from __future__ import annotations

from dataclasses import dataclass

CITATION = (
    "M. Awasthi, T. Suri, Z. Guz, A. Shayesteh, M. Ghosh, V. Balakrishnan: System-Level Characterization of Datacenter "
    "Applications, ICPE 2015"
)

TABLE_1 = (
    ("processor", "two Xeon E5-2690 of 8 cores, 2.9 GHz"),
    ("storage", "three SATA disks, 7,200 rpm"),
    ("memory", "128 GB DDR3 with ECC, 8 channels of DDR3-1600: 102.4 GB/s"),
    ("network", "10 Gigabit Ethernet"),
    ("operating system", "Ubuntu 12.04.5"),
    ("software", "Hadoop 1.2.1, memcached 1.4.13, Cassandra 2.0.9, Redis 2.8.12"),
)

#: System, parameter, original and tuned value.
TABLE_2 = (
    ("Memcache", "DRAM size", "4 GB", "60 GB"),
    ("Memcache", "server threads", "4", "32"),
    ("Memcache", "server TCP connections", "200", "4096"),
    ("Memcache", "memslap clients", "1", "4"),
    ("Memcache", "threads a client", "4", "16"),
    ("Cassandra", "commit log", "same disk as the database", "a disk of its own"),
    ("Cassandra", "heap / JVM size", "default", "600 MB / 6 GB"),
    ("Cassandra", "concurrent reads / writes", "default", "64 / 64"),
    ("Cassandra", "memtable size", "default", "4 GB"),
    ("Cassandra", "open file handles", "default", "32768"),
    ("Cassandra", "YCSB client threads", "default", "200"),
    ("Cassandra", "YCSB database size", "default", "128 GB"),
)

#: Group, label of the plot, its meaning in our words, and the metrics of ours that show the same.
TABLE_3 = (
    ("CPU", "User", "percentage of time in user mode", ('cpu_seconds_total{state="user"}',)),
    ("CPU", "Sys", "percentage of time in the kernel", ('cpu_seconds_total{state="system"}',)),
    ("CPU", "Wait", "percentage of time idle with I/O outstanding", ('cpu_seconds_total{state="iowait"}',)),
    ("memory", "Map", "mapped and anonymous", ('memory_bytes{kind="mapped"}', 'memory_bytes{kind="anonymous"}')),
    ("memory", "Buff", "buffers of the kernel", ('memory_bytes{kind="buffers"}',)),
    ("memory", "Cached", "page cache without the swap cache", ('memory_bytes{kind="cached"}',)),
    ("memory", "Slab", "slabs of the kernel", ('memory_bytes{kind="slab"}',)),
    ("memory", "Inact", "of processes that ended (the kernel counts pages not used lately)",
     ('memory_bytes{kind="inactive"}',)),
    ("I/O", "ReadMB", "read from disk", ("disk_read_bytes_total",)),
    ("I/O", "WriteMB", "written to disk", ("disk_write_bytes_total",)),
    ("network", "InMB", "called sent (by its name: received)", ("network_receive_bytes_total",)),
    ("network", "OutMB", "called received (by its name: sent)", ("network_transmit_bytes_total",)),
)  # fmt: skip


@dataclass(frozen=True)
class PressurePoints:
    """A row of table 4. ``systems`` are those of ours that stand for the workload; empty where there is none."""

    workload: str
    limited_by: str
    #: The paper's evidence, and its section.
    because: str
    systems: tuple[str, ...] = ()


TABLE_4 = (
    PressurePoints(
        "Memcache", "DRAM, network", "DRAM capacity by design; the card's full rate with large values (4.3.1)",
        ("memcached",),
    ),
    PressurePoints("Cassandra", "disk", "about half of the CPU time waits for I/O under scans (4.3.2)", ("cassandra",)),
    PressurePoints("Redis", "network", "the link is full in all five stages (4.3.5)", ("redis",)),
    PressurePoints("Nutch (Hadoop)", "CPU, disk", "map waits for the disk, reduce computes (4.3.3)"),
    PressurePoints("Data Analytics (Hadoop)", "CPU", "CPU use is near its peak while classifying (4.3.4)"),
)  # fmt: skip

#: Figure or section, what, and the number in the text.
TEXT = (
    ("Figure 2", "memcached: 99th percentile of latency with 32 server threads", "below 1 ms"),
    ("Section 4.3.1", "memcached: DRAM bandwidth, of its peak, at most", "9.3 %"),
    ("Figure 4", "memcached: network with large values", "1.25 GB/s, the rate of the card"),
    ("Figure 3", "Cassandra: a disk of its own for the commit log", "2x the throughput"),
    ("Figure 3", "Cassandra: data over two disks, beyond that", "1.5x"),
    ("Figure 5", "Cassandra, YCSB-E: CPU time that waits for I/O", "about 50 %"),
    ("Figure 5", "Cassandra, YCSB-E: reads from disk", "about 50 MB/s"),
    ("Figure 5", "Cassandra, YCSB-E: network, of its peak", "about 1 %"),
    ("Figure 7", "Nutch: CPU use in reduce", "up to 80 %"),
    ("Figure 7", "Nutch: writes to disk in shuffle and reduce", "up to 250 MB/s"),
    ("Section 4.3.3", "Nutch: memory per map task", "1.2 GB"),
    ("Figure 8", "Nutch: time per map task, 64 GB of memory over 128 GB", "about 5x"),
    ("Figure 10", "Data Analytics: DRAM bandwidth, of its peak", "below 20 %"),
    ("Section 4.3.4", "Data Analytics: DRAM page hits", "about 80 %"),
    ("Figure 11", "Data Analytics: time per map task with more than 16 maps a node", "2x"),
    ("Figure 12", "Data Analytics: time per map task, heap of 600 MB and of 800 MB", "over 300 s and 100 s"),
    ("Figure 13", "Redis: DRAM bandwidth", "below 10 GB/s"),
    ("Figure 14", "Redis: network in all five stages, four instances", "full (10 Gbit/s)"),
    ("Figure 14", "Redis: data that lpush stores", "32 GB"),
)
