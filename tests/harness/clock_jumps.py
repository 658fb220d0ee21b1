"""Clock jumps in child processes of the tests."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from types import FrameType

from harness.clocks import shift_wall_clock

# Environment variable with the path of a file that holds the clock offset in seconds.
VARIABLE = "FOOTNOTE_CLOCK_AHEAD"


def arm_from_environment() -> None:
    """Read the offset from the file in the environment at each SIGUSR1.

    The variable is removed, because the program would refuse it as an unknown setting.
    """
    if not (file := os.environ.pop(VARIABLE, "")):
        return
    wrong = ExitStack()

    def read(_number: int, _frame: FrameType | None) -> None:
        wrong.close()
        wrong.enter_context(shift_wall_clock(timedelta(seconds=float(Path(file).read_text()))))

    signal.signal(signal.SIGUSR1, read)
