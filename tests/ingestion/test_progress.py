"""What is said of the time left, while files are still on their way in."""

from __future__ import annotations

from ingestion.progress import Pace
from storage.models import Rung


def test_no_time_is_promised_for_files_that_were_not_looked_into_yet() -> None:
    """Shows that "nothing known" is not shown as "done"."""
    assert Pace(Rung.QUICK).progress([], 2).seconds_left is None


def test_no_time_is_left_when_nothing_is_left() -> None:
    """Shows that an empty folder is done at once."""
    assert Pace(Rung.QUICK).progress([], 0).seconds_left == 0.0
