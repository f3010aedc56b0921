"""Ctrl-C while something must not be cut in half: it waits, is not lost, and acts once."""

from __future__ import annotations

import signal

import pytest

from rackscope.runs.interruption import held_back


def test_an_interrupt_waits_until_the_block_is_left() -> None:
    finished = False
    with pytest.raises(KeyboardInterrupt), held_back():
        signal.raise_signal(signal.SIGINT)
        finished = True
    assert finished
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_is_allowed_acts_at_once_and_what_follows_waits() -> None:
    reached = []
    with pytest.raises(KeyboardInterrupt), held_back() as interruptions:
        try:
            with interruptions.allowed():
                signal.raise_signal(signal.SIGINT)
                reached.append("after the signal")
        except KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)
            reached.append("cleaned up")
            raise
    assert reached == ["cleaned up"]


def test_an_interrupt_before_the_allowed_window_acts_when_it_begins() -> None:
    reached = []
    with pytest.raises(KeyboardInterrupt), held_back() as interruptions:
        signal.raise_signal(signal.SIGINT)
        reached.append("prepared")
        with interruptions.allowed():
            reached.append("never")
    assert reached == ["prepared"]


def test_an_error_is_not_replaced_by_the_interrupt_that_came_with_it() -> None:
    with pytest.raises(ValueError, match="the reason"), held_back():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("the reason")


def test_nested_blocks_hand_it_on() -> None:
    reached = []
    with pytest.raises(KeyboardInterrupt), held_back():
        with held_back():
            signal.raise_signal(signal.SIGINT)
        reached.append("still held back by the outer block")
    assert len(reached) == 1


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with held_back():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
