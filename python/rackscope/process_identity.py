"""What tells a process for good: numbers are given again, a number with its start in one boot is not."""

from __future__ import annotations

from pathlib import Path


def process_start_ticks(pid: int) -> int | None:
    """When a process started (field 22 of /proc/PID/stat); ``None`` when it has ended, also if nobody waited for it."""
    try:
        # The name, in parentheses, may hold anything: fields are counted after it.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if len(fields) < 20 or fields[0] in (b"Z", b"X", b"x") else int(fields[19])


def boot_id() -> str | None:
    """This boot of this host; ``None`` where the kernel does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
