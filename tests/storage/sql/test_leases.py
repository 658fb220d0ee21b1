"""How long what failed rests before it is tried again."""

from __future__ import annotations

from storage.sql.leases import MAX_PAUSE_SECONDS, pause


def test_pauses_double_up_to_half_a_minute_and_spread() -> None:
    """Shows that a fault costs a second, one that stays no more than half a minute, and never all at once."""
    for tries, longest in ((0, 1), (1, 1), (2, 2), (3, 4), (5, 16), (6, MAX_PAUSE_SECONDS), (10_000, 30)):
        seen = [pause(tries).total_seconds() for _ in range(50)]
        assert longest / 2 <= min(seen) < max(seen) <= longest
