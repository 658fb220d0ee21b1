"""Makes the clock of a process that the tests start wrong by as much as they say, from one moment on."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from types import FrameType

from storage.clock import clock_ahead

# Where a process is told the file that holds the seconds by which its clock is ahead, or behind.
VARIABLE = "FOOTNOTE_CLOCK_AHEAD"


def arm_from_environment() -> None:
    """Read the file that the environment names, if any, at each SIGUSR1.

    The program would refuse the variable as an unknown setting, so it is taken out.
    """
    if not (file := os.environ.pop(VARIABLE, "")):
        return
    wrong = ExitStack()

    def read(_number: int, _frame: FrameType | None) -> None:
        wrong.close()
        wrong.enter_context(clock_ahead(timedelta(seconds=float(Path(file).read_text()))))

    signal.signal(signal.SIGUSR1, read)
