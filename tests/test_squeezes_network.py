"""The network squeezes: what is set is what is left, and what was there before comes back."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rackscope.errors import SqueezeError
from rackscope.squeezes import transfer
from rackscope.squeezes.base import Capacity, Isolation, NotSqueezable, Squeeze, Subject
from rackscope.squeezes.isolation import make_isolation
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.namespaces import ADDRESSES, free_network
from rackscope.squeezes.network import LINK_CEILING, SQUEEZES, limit_link
from rackscope.squeezes.removal import remove_link
from rackscope.squeezes.token_bucket import FRAME_BYTES, burst_bytes, clear_rate, read_rate, set_rate

#: 100 Mbit/s: slow enough for any machine to reach while it is busy with other things.
SLOW_LINK = 12.5e6


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "state") as journal:
        yield journal


@pytest.fixture
def isolation(journal: Journal) -> Iterator[Isolation]:
    with make_isolation("network", journal) as isolation:
        if isolation.network_namespace is None:
            pytest.skip(f"no network namespace can be made here: {isolation.missing['network']}")
        try:
            set_rate(isolation.host_interface or "", None, SLOW_LINK)
        except SqueezeError as error:
            pytest.skip(f"no token bucket can be set here: {error}")
        clear_rate(isolation.host_interface or "", None)
        yield isolation


def rates(isolation: Isolation) -> tuple[float | None, float | None]:
    """The limits towards the system, and from it."""
    assert isolation.host_interface is not None
    assert isolation.system_interface is not None
    return read_rate(isolation.host_interface, None), read_rate(isolation.system_interface, isolation.network_namespace)


networks = st.builds(
    lambda offset, length: IPv4Network((int(ADDRESSES.network_address) + offset, length), strict=False),
    st.integers(0, ADDRESSES.num_addresses - 1),
    st.integers(17, 32),
)


@settings(deadline=None)
@given(taken=st.lists(networks, max_size=20), start=st.integers(0, 2**22))
@example(taken=[IPv4Network("198.18.0.0/16"), IPv4Network("198.19.0.4/30")], start=16384)
@example(taken=[IPv4Network("198.18.0.4/30"), IPv4Network("198.19.0.0/16")], start=16384)
@example(taken=[IPv4Network("198.18.0.0/17"), IPv4Network("198.18.128.0/17"), IPv4Network("198.19.0.0/16")], start=3)
def test_a_chosen_network_overlaps_nothing_that_is_there(taken: list[IPv4Network], start: int) -> None:
    try:
        network = free_network([*taken, IPv4Network("0.0.0.0/0"), IPv4Network("10.0.0.0/8")], start)
    except SqueezeError:
        used = {number for other in taken for number in range(int(other[0]) >> 2, (int(other[-1]) >> 2) + 1)}
        assert len(used) == ADDRESSES.num_addresses // 4
        return
    assert network.subnet_of(ADDRESSES)
    assert network.prefixlen == 30
    assert not any(network.overlaps(other) for other in taken)


def test_a_host_that_uses_all_of_the_range_is_told_so() -> None:
    with pytest.raises(SqueezeError, match=r"198\.18\.0\.0/15 is in use"):
        free_network([ADDRESSES], 7)


@given(rate=st.floats(125_000, 4e9))
def test_the_bucket_holds_full_frames_and_little_more_than_a_moment(rate: float) -> None:
    assert 4 * FRAME_BYTES <= burst_bytes(rate) <= max(4 * FRAME_BYTES, rate / 100)


@pytest.mark.parametrize("name", ["eth0", "rs12h", "rs12-0x", "lo", "rs1-0h/.."])
def test_a_link_that_is_not_ours_is_never_removed(name: str) -> None:
    with pytest.raises(SqueezeError, match="not a network link of rackscope's"):
        remove_link(name)


def test_a_link_that_is_gone_counts_as_removed() -> None:
    remove_link("rs9999999-99h")


def test_loopback_is_not_squeezed(journal: Journal) -> None:
    for isolation in (Isolation(), Isolation(missing={"network": "it takes root"})):
        for squeeze in SQUEEZES:
            answer = squeeze.capacity(Subject(isolation, (0,)))
            assert isinstance(answer, NotSqueezable)
            assert "loopback" in answer.reason
            assert isolation.missing.get("network", "") in answer.reason
            assert "CAP_NET_ADMIN" in answer.needs
            with pytest.raises(SqueezeError, match="no network namespace of its own"):
                squeeze.apply(Subject(isolation, (0,)), 0.5, journal)
        with pytest.raises(SqueezeError, match="no network namespace of its own"):
            limit_link(isolation, 1e6, journal)


@pytest.mark.parametrize("rate", [0.0, 1.0, 1e12, float("nan"), float("inf")])
def test_a_rate_that_no_link_has_is_refused(rate: float) -> None:
    with pytest.raises(SqueezeError, match="not limited to"):
        set_rate("rs1-0h", None, rate)


def test_a_link_that_is_not_there_is_told() -> None:
    with pytest.raises(SqueezeError, match="rs1-0h cannot be limited to 1000000 bytes/s: No such device"):
        set_rate("rs1-0h", None, 1e6)


def test_each_direction_is_limited_alone_and_set_free(isolation: Isolation, journal: Journal) -> None:
    subject = Subject(isolation, (0,), ceilings={LINK_CEILING: SLOW_LINK})
    into, out = SQUEEZES
    assert (into.name, out.name) == ("network_in", "network_out")
    with into.apply(subject, 0.6, journal) as applied:
        assert rates(isolation) == (SLOW_LINK * 0.6, None)
        with out.apply(subject, 0.8, journal):
            assert rates(isolation) == (SLOW_LINK * 0.6, SLOW_LINK * 0.8)
        assert rates(isolation) == (SLOW_LINK * 0.6, None)
        applied.release()
        applied.release()
        assert rates(isolation) == (None, None)


def test_a_limited_link_gets_its_limit_back_after_a_squeeze(isolation: Isolation, journal: Journal) -> None:
    subject = Subject(isolation, (0,), ceilings={LINK_CEILING: SLOW_LINK})
    with limit_link(isolation, SLOW_LINK, journal):
        for squeeze in SQUEEZES:
            capacity = squeeze.capacity(subject)
            assert isinstance(capacity, Capacity)
            assert capacity.value == SLOW_LINK
            assert 0 < capacity.floor < 1
        with pytest.raises(RuntimeError, match="in the middle"), SQUEEZES[0].apply(subject, 0.1, journal):
            assert rates(isolation) == (SLOW_LINK * 0.1, SLOW_LINK)
            raise RuntimeError("in the middle")
        assert rates(isolation) == (SLOW_LINK, SLOW_LINK)
    assert rates(isolation) == (None, None)


def test_an_end_that_cannot_be_limited_leaves_the_other_free(isolation: Isolation, journal: Journal) -> None:
    broken = Isolation(
        network_namespace=isolation.network_namespace,
        address=isolation.address,
        host_interface=isolation.host_interface,
        system_interface="rs1-0s",
    )
    with pytest.raises(SqueezeError, match="rs1-0s"):
        limit_link(broken, SLOW_LINK, journal)
    assert rates(isolation) == (None, None)


@pytest.mark.parametrize("squeeze", SQUEEZES, ids=lambda squeeze: squeeze.name)
def test_verifying_measures_what_is_left(isolation: Isolation, journal: Journal, squeeze: Squeeze) -> None:
    subject = Subject(isolation, (0,), ceilings={LINK_CEILING: SLOW_LINK})
    achieved = squeeze.verify(subject, 0.1, journal)
    assert achieved.fraction is not None
    # Far from all of it, which one connection would fill; how near to a tenth is not asked of a busy machine.
    assert 0 < achieved.fraction < 0.5
    assert achieved.effective == (abs(achieved.fraction - 0.1) <= 0.1 * 0.1)
    assert rates(isolation) == (None, None)


@pytest.mark.parametrize(
    ("error", "said"),
    [(OSError(errno.EHOSTUNREACH, "No route to host"), "No route to host"), (TimeoutError("timed out"), "timed out")],
)
def test_a_network_over_which_nothing_can_be_sent_says_why(
    monkeypatch: pytest.MonkeyPatch, error: OSError, said: str
) -> None:
    def refuse(namespace: Path, action: object) -> None:
        raise error

    monkeypatch.setattr(transfer, "call_in_namespace", refuse)
    with pytest.raises(SqueezeError) as failed:
        transfer.measure_transfer(Path("/proc/self/ns/net"), "127.0.0.1", "in")
    assert failed.value.what == f"nothing could be sent over the system's network to measure it: {said}"
    assert "firewall" in failed.value.advice


def test_the_capacity_of_an_unlimited_veth_is_measured_once(
    isolation: Isolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = Subject(isolation, (0,))
    first = SQUEEZES[0].capacity(subject)
    assert isinstance(first, Capacity)
    assert first.value > 0
    assert "measured" in first.source

    def refuse(*arguments: object) -> float:
        raise AssertionError("measured again")

    monkeypatch.setattr(transfer, "_receive_while_sending", refuse)
    assert SQUEEZES[0].capacity(subject) == first
