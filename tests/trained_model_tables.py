"""Made-up tables of servers in the form of the public ones: small, and of known laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

MAKERS = (
    "Intel(R) Xeon(R) Gold {n} CPU @ 2.50GHz|board",
    "AMD EPYC {n} 32-Core Processor|board",
    "Neoverse-N{n}|board",
)


def cloud_tables(
    processors: int = 24, seed: int = 0, noise: float = 0.02, gains: float = 0.0
) -> dict[str, pl.DataFrame]:
    """Servers, scaling and web load: processors of different speed; those of Intel's gain 30 % by a second thread.

    By ``gains`` their logarithms then differ from processor to processor, for no reason that a table shows.
    """
    random = np.random.default_rng(seed)
    servers, scaling, web = [], [], []
    for processor in range(processors):
        maker = processor % 3
        speed = float(np.exp(random.normal(7.3, 0.4)))
        threads_per_core = 1 if maker == 2 else 2
        gain = (1.3 * float(np.exp(gains * random.uniform(-1, 1))), 1.0, 1.0)[maker]
        for size in (2, 4, 8, 16):
            name = f"{('alpha', 'beta', 'gamma')[processor % 4 % 3]}/p{processor}.{size}"
            cores = size // threads_per_core

            def wobble() -> float:
                return float(np.exp(random.normal(0.0, noise)))

            servers.append(
                {
                    "server": name,
                    "cpu_model": MAKERS[maker].format(n=5100 + 7 * processor),
                    "architecture": "aarch64" if maker == 2 else "x86_64",
                    "vcpus": size,
                    "threads_per_core": threads_per_core,
                    "read_bandwidth_dram_mb_s": 8 * speed * cores * wobble(),
                    "read_bandwidth_l2_mb_s": 50 * speed * cores * wobble(),
                    "redis_rps_pipeline1": 40 * speed * cores * gain * wobble(),
                    "redis_rps_best": 400 * speed * cores * gain * wobble(),
                }
            )
            for workers in range(1, size + 1):
                beyond = max(0, workers - cores) / max(1, size - cores)
                rate = speed * (min(workers, cores) + cores * (gain - 1.0) * beyond)
                scaling.append({"server": name, "workers": workers, "ops_per_second": rate * wobble() ** 0.1})
            for answer, cost in (("1k", 20.0), ("16k", 12.0), ("256k", 2.0)):
                for connections in (1, 4):
                    rate = cost * speed * cores * (1.0 if connections == 1 else 1.2) * wobble()
                    web.append(
                        {
                            "server": name,
                            "response_size": answer,
                            "server_threads": size,
                            "connections": connections * size,
                            "requests_per_second": rate,
                            "latency": 1e-4,
                        }
                    )
    return {
        "sparecores-servers": pl.DataFrame(servers),
        "sparecores-core-scaling": pl.DataFrame(scaling),
        "sparecores-web-load": pl.DataFrame(web),
    }


def power_table(processors: int = 60, seed: int = 0) -> pl.DataFrame:
    """SPECpower's form: 40 W and 6 W a core and 0.3 W a GB for each chip, idle a quarter of that."""
    random = np.random.default_rng(seed)
    rows = []
    for processor in range(processors):
        for chips in (1, 2):
            cores, memory = int(2 ** (1 + processor % 5)), int(2 ** (3 + processor % 4))
            watts = chips * (40 + 6 * cores + 0.3 * memory) * float(np.exp(random.normal(0, 0.05)))
            rows.append(
                {
                    "System": f"server {processor}-{chips}",
                    "CPU Description": f"Intel Xeon X{5100 + 10 * processor}",
                    "Published": f"Mar-{2007 + processor % 16}",
                    "# Cores": cores * chips,
                    "Chips": chips,
                    "# Threads Per Core": 2,
                    "Processor MHz": 2400 + 20 * (processor % 7),
                    "Total Memory (GB)": memory * chips,
                    "Thermal Design Power (W)": 30 + 10 * cores if processor % 5 < 4 else None,
                    "avg. watts @ 100%": watts,
                    "avg. watts @ active idle": watts / 4,
                }
            )
    return pl.DataFrame(rows)


#: A server of ``cloud_tables``, as a user describes it.
CLOUD: dict[str, float | str | Mapping[Any, float]] = {
    "processor": "AMD EPYC 7313",
    "hardware_threads": 8,
    "threads_per_core": 2,
    "read_bandwidth_dram_mb_s": 48_000.0,
    "read_bandwidth_l2_mb_s": 300_000.0,
    "operations_per_second": {1: 1500.0, 2: 3000.0, 4: 6000.0, 6: 6000.0, 8: 6000.0},
    "redis_requests_per_second": 240_000.0,
    "redis_pipelined_requests_per_second": 2_400_000.0,
    "web_requests_per_second": {"1k": 120_000.0, "16k": 72_000.0, "256k": 12_000.0},
    "workers": 8,
}
#: One of ``power_table``.
SERVER: dict[str, float | str] = {
    "processor": "Intel Xeon X5200",
    "chips": 2,
    "cores": 16,
    "mhz": 2420,
    "memory_gb": 32,
    "year": 2012,
    "thermal_design_watts": 110,
}
