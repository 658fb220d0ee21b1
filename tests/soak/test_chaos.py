"""Everything goes wrong at once, for a short while; and what the table says of memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from chaos.tally import ChaosTally, grown, growth
from soak_pairs import PAIRS

DRIVER = Path(__file__).with_name("soak_chaos.py")
PATHS = [Path(__file__).parents[depth] for depth in (2, 1, 0)]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.engine("webdav")
def test_a_short_round_of_everything_at_once_costs_nothing_but_time(
    seed: int, record_property: Callable[[str, object], None]
) -> None:
    """Shows that no answer or file is lost, doubled or harmed; the seed decides what happens when."""
    command = [DRIVER, "--pair", PAIRS[0], "--seed", str(seed % 100_000), "--seconds", "60"]
    environment = os.environ | {"PYTHONPATH": ":".join(map(str, PATHS))}
    ended = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False
    )
    record_property("table", ended.stdout)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_growth_is_told_from_noise_and_warm_up() -> None:
    """Shows that a first fifth that rises and single peaks are no growth, and that a slow rise is."""
    steady = [*range(50, 100), *([100, 101, 300, 99] * 50)]
    rising = [100 + second / 20 for second in range(250)]
    assert growth(steady) == pytest.approx(0, abs=0.01)
    assert grown("pair", ChaosTally(growths=[growth(rising) or 0]))
    assert growth(steady[:20]) is None
