"""A short soak round with all faults at once, and the memory growth measure."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.soak.chaos.tally import ChaosTally, grown, growth
from tools.soak.rounds.pairs import PAIRS
from tools.soak.rounds.process import SABOTAGE

ROOT = Path(__file__).parents[3]


def run_driver(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one round on the pair that needs no server."""
    return subprocess.run(
        [sys.executable, "-m", "tools.soak.soak", "--pair", PAIRS[0], *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": "tests", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.engine("webdav")
def test_a_short_round_of_all_faults_loses_nothing(
    seed: int, record_property: Callable[[str, object], None]
) -> None:
    """Shows that no answer or file is lost, duplicated or damaged; the seed decides the timing."""
    ended = run_driver("--seed", str(seed % 100_000), "--seconds", "60")
    record_property("table", ended.stdout)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.engine("webdav")
def test_a_service_that_loses_questions_is_detected() -> None:
    """Shows that the harness can fail: some questions are acknowledged and lost."""
    ended = run_driver("--seconds", "30", "--patience", "20", **{SABOTAGE: "1"})
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "was never answered" in ended.stdout


def test_growth_is_distinguished_from_noise_and_warm_up() -> None:
    """Shows that a warm-up and single peaks are no growth, and that a slow rise is."""
    steady = [*range(50, 100), *([100, 101, 300, 99] * 50)]
    rising = [100 + second / 20 for second in range(250)]
    assert growth(steady) == pytest.approx(0, abs=0.01)
    assert grown("pair", ChaosTally(growths=[growth(rising) or 0]))
    assert growth(steady[:20]) is None
