"""What the slides of Han 2014 print. Their plots (throughput by system, by mode, by cores) carry no numbers."""

from __future__ import annotations

from dataclasses import dataclass

CITATION = (
    'D. Han: Bringing the Performance to the "Cloud" (slides, 2014), of MICA (H. Lim, D. Han, D. Andersen, M. '
    "Kaminsky) and mTCP (E. Jeong, S. Woo, M. Jamshed, H. Jeong, S. Ihm, D. Han, K. Park), both NSDI 2014"
)

#: What MICA was measured on and with.
MICA_SETUP = (
    ("server", "two processors of 8 cores at 2.7 GHz, 80 Gbit/s of Ethernet"),
    ("packets", "DPDK, bursts, past the kernel; UDP"),
    ("YCSB-A", "50 % gets, 50 % puts"),
    ("YCSB-B", "95 % gets, 5 % puts"),
)


@dataclass(frozen=True)
class Claim:
    """What a slide says. ``value`` is its number as printed (empty where only a plot has it)."""

    what: str
    value: str
    #: Which study shows the same here, and what of it: see ``page``.
    shown_by: str = ""


MICA = (
    Claim("cache tier: throughput over the best other, at most", "7x", "best peer"),
    Claim("EREW against CRCW", "EREW is faster (no number)", "EREW over CRCW"),
    Claim("EREW under skewed keys", "hardly slower (no number)", "EREW skewed over uniform"),
    Claim("cores in CRCW", "limited by locks and cache lines (no number)", "CRCW over cores"),
    Claim("an own network stack over the kernel's UDP", "UDP's packets are a bound (no number)", "past the kernel"),
    Claim("requests sent to the core that owns the key", "EREW requires it (no number)", "request direction"),
)

MTCP = (
    Claim("web tier: throughput, at most", "3x"),
    Claim("64 bytes a connection: mTCP over Linux", "25x"),
    Claim("64 bytes a connection: mTCP over SO_REUSEPORT", "5x"),
    Claim("64 bytes a connection: mTCP over MegaPipe", "3x"),
    Claim("lighttpd, SPECweb2009 static (738 bytes on average): mTCP over Linux", "3.2x"),
    Claim("the same: mTCP over MegaPipe", "1.5x"),
    Claim("SSLShader: gain", "33 %"),
    Claim("small transactions on the kernel's TCP, of 10 Gbit/s", "1.2 Gbit/s"),
    Claim("CPU time of a web server inside the kernel", "83 %"),
    Claim("lines changed in Apache's library", "29 of 66,493"),
    Claim("TCP flows of a cellular backbone below 64 KB", "over 90 %"),
    Claim("TCP flows of a cellular backbone below 4 KB", "50 %"),
)
