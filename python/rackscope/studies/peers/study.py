"""``study peers``: a cache beside memcached, Redis and whatever other caches are here, with the same client."""

from __future__ import annotations

from rackscope.studies.base import Option, Study, later

STUDY = Study(
    name="peers",
    help="compare a cache with memcached, Redis and other caches: same client, same cores",
    description=(
        "Starts a cache and its peers on the same cores and measures them in turns with the same load generator.\n"
        "Settings differ in transport, outstanding requests, keys per read and value size. Reports throughput with\n"
        "ratios, CPU time of server and client, latency over load, and memory. All values are checked. Systems run on\n"
        "one core unless --cores names more.\n"
        "memcached and Redis are downloaded if missing; pogocache, Valkey, Dragonfly, Garnet and Segcache are\n"
        "used if they are on PATH.\n\n"
        "Settings: unpipelined, unix, 16-deep, 50-deep, large (25 KiB), each with -mixed for 95 % reads and 5 %\n"
        "updates, and multi-get (100 keys).\n\n"
        "Examples:\n"
        "  rackscope study peers cache\n"
        "  rackscope study peers cache --peers memcached --settings unpipelined,multi-get --loads none\n"
        "  rackscope study peers cache --memory 10m"
    ),
    conduct=later("peers.conduct:conduct"),
    subject="system",
    options=(
        Option("peers", "text", "peers to compare with (default: all that are installed)", metavar="NAME,NAME"),
        Option("settings", "text", "settings to measure in (default: all)", metavar="NAME,NAME"),
        Option("repetitions", "count", "windows of each system in each setting", "6"),
        Option("window", "duration", "length of one window", "1s"),
        Option(
            "loads",
            "text",
            "loads to measure latency at, in percent of memcached's highest throughput; or none",
            "25,50,75,90",
            metavar="N,N",
        ),
        Option("keys", "count", "keys in the data set", "100k"),
        Option(
            "memory",
            "count",
            "items of 32 + 64 bytes to measure memory with; fewer than 10m are scaled to 10m; 0 skips memory",
            "1.25m",
            metavar="ITEMS",
        ),
        Option("budget", "duration", "time for all settings and loads, without memory", "15m"),
    ),
    title=lambda request: f"{request.asked.system} and its peers",
    check=later("peers.conduct:build_plan"),
)
