"""Valkey: the continuation of Redis, with its options."""

from __future__ import annotations

from rackscope.systems.redis import Redis


class Valkey(Redis):
    """Valkey with the knobs of Redis, which it shares."""

    name = "valkey"
    description = "in-memory data structures, the continuation of Redis, found on PATH"
    programs = ("valkey-server",)
    packages = ()


SYSTEM = Valkey()
