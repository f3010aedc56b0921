"""``study transports``: what each way to a cache is worth, and who may touch what behind it."""

from __future__ import annotations

from rackscope.studies.base import Option, Study, later

STUDY = Study(
    name="transports",
    help="compare TCP, unix socket, UDP, batches and AF_XDP as ways to the cache engine, and its access modes",
    description=(
        "Measures MICA's end-to-end comparisons on this host: the cache engine over TCP, a unix socket, UDP with one\n"
        "request and with 32 requests in a datagram, and AF_XDP over a veth, beside memcached over UDP; with two\n"
        "workers, the access modes EREW, CREW and CRCW, and requests that go to the worker that owns the key against\n"
        "ones that workers forward. Reports ratios with intervals, CPU time of server and client for a request, and\n"
        "latency over load. All values are checked. One factor is varied at a time: from zipfian keys and 95 % reads\n"
        "to uniform keys, and to 50 % reads. What this host cannot do (AF_XDP takes root) is left out and named.\n\n"
        "Transports: tcp, tcp-deep, unix-deep, udp, udp-deep, udp-batch, udp-batch-veth, af_xdp, memcached-udp; all\n"
        "but tcp, udp and memcached-udp have 512 requests outstanding.\n"
        "Modes: erew, crew, crcw, erew-directed, erew-forwarded.\n\n"
        "Examples:\n"
        "  rackscope study transports\n"
        "  rackscope study transports --transports udp-batch,af_xdp --modes none --repetitions 12"
    ),
    conduct=later("transports.conduct:conduct"),
    subject="none",
    options=(
        Option("transports", "text", "transports to measure (default: all), or none", metavar="NAME,NAME"),
        Option("modes", "text", "access modes to measure, on two cores (default: all), or none", metavar="NAME,NAME"),
        Option("repetitions", "count", "rounds over all combinations", "6"),
        Option("window", "duration", "length of one window", "400ms"),
        Option(
            "loads",
            "text",
            "loads to measure latency at, in percent of each transport's own highest throughput; or none",
            "30,60,90",
            metavar="N,N",
        ),
        Option("keys", "count", "keys in the data set", "100k"),
        Option("no-fetch", "flag", "do not download memcached if it is missing"),
        Option("budget", "duration", "time for all rounds, without starting systems", "5m"),
    ),
    title=lambda _: "Transports of the cache engine",
    check=later("transports.conduct:build_plan"),
)
