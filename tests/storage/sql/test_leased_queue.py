"""Backoff after failures, and detection of dead lease owners."""

from __future__ import annotations

import os
import subprocess

from storage.sql.leased_queue import MAX_BACKOFF_SECONDS, backoff, is_process_dead, process_name


def test_backoff_doubles_up_to_half_a_minute_with_jitter() -> None:
    for tries, longest in ((0, 1), (1, 1), (2, 2), (3, 4), (5, 16), (6, MAX_BACKOFF_SECONDS), (10_000, 30)):
        seen = [backoff(tries).total_seconds() for _ in range(50)]
        assert longest / 2 <= min(seen) < max(seen) <= longest


def test_an_exited_process_of_this_machine_is_dead() -> None:
    """Shows that processes of other machines are never considered dead."""
    process = subprocess.Popen(["true"])
    process.wait()
    ended = process_name().replace(f":{os.getpid()}:", f":{process.pid}:")
    assert is_process_dead(ended)
    assert not is_process_dead(process_name())
    assert not is_process_dead("elsewhere:1:abc")
    assert not is_process_dead("nonsense")
