"""Shows that each fault of the list is caught: ``make mutate``, or of some: ``make mutate ONLY=words``.

Every fault is put into a copy of the tree of its own, in a temporary folder, and its test is run there. The
copy has a Python environment of its own that finds the copy's packages and behind them the libraries of this
one: programs that tests start with ``python -I`` find the copy's code too.

Exit status: 0 when every fault is caught; 1 when one is not, when the text that it changes is gone, or when a
test fails without any fault.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.mutations.mutation_list import MUTATIONS, Mutation

TREE = Path(__file__).parents[2]
COPIED = ("bot", "ingestion", "storage", "tests", "tools", "deploy", "pyproject.toml")
MODEL = Path("storage", "data", "model.onnx")
AT_ONCE = 2
MAX_SECONDS = 300
CAUGHT = "caught"
# Of pytest's exit codes those that tell of tests; all others tell of tests that did not run.
PASSED, FAILED = 0, 1


def copy_tree(target: Path) -> None:
    """Make a copy of the product and its tests, with an environment whose packages are the copy's."""
    for name in COPIED:
        source = TREE / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("*.onnx"))
        else:
            shutil.copy2(source, target / name)
    (target / MODEL).symlink_to(TREE / MODEL)  # 23 MB, of which no copy is needed
    venv.create(target / ".venv", symlinks=True)
    (packages,) = (target / ".venv" / "lib").glob("python*/site-packages")
    (packages / "copy.pth").write_text(f"{target}\n{sysconfig.get_path('purelib')}\n")


def run_tests(tree: Path, *tests: str, seconds: int = MAX_SECONDS) -> subprocess.CompletedProcess[str]:
    """Run tests in a copy until the first one fails.

    Raises:
        subprocess.TimeoutExpired: they hang.
    """
    command = [tree / ".venv/bin/python", "-m", "pytest", "-x", f"--basetemp={tree / 'tmp'}", *tests]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False, timeout=seconds)


def outcome_of(mutation: Mutation, tree: Path) -> str:
    """What came of a fault in its copy: CAUGHT, or what is wrong."""
    copy_tree(tree)
    file = tree / mutation.file
    text = file.read_text()
    if text.count(mutation.before) != 1:
        return f"its text does not stand once in {mutation.file}"
    file.write_text(text.replace(mutation.before, mutation.after))
    try:
        status = run_tests(tree, mutation.test).returncode
    except subprocess.TimeoutExpired:
        return "its test hangs"
    return {FAILED: CAUGHT, PASSED: "SURVIVED"}.get(status, f"pytest ended with {status}")


def is_caught(folder: Path, number: int, mutation: Mutation) -> bool:
    """Try a fault in a copy that is removed at once, and print what came of it."""
    begun, tree = time.monotonic(), folder / str(number)
    try:
        outcome = outcome_of(mutation, tree)
    finally:
        shutil.rmtree(tree, ignore_errors=True)
    print(f"{outcome}: {mutation.fault} ({time.monotonic() - begun:.0f} s)", flush=True)
    return outcome == CAUGHT


def main() -> int:
    """Run the tests as they are, and each with its fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="words of a fault, its file or its test")
    only = parser.parse_args().only
    mutations = [one for one in MUTATIONS if only in f"{one.fault} {one.file} {one.test}"]
    with tempfile.TemporaryDirectory(prefix="mutants-") as name, ThreadPoolExecutor(AT_ONCE) as pool:
        folder = Path(name)
        copy_tree(folder / "sound")
        tests = sorted({one.test for one in mutations})
        sound = pool.submit(run_tests, folder / "sound", *tests, seconds=4 * MAX_SECONDS)
        caught = list(pool.map(lambda one: is_caught(folder, *one), enumerate(mutations)))
        if sound.result().returncode != PASSED:
            print(sound.result().stdout, "the tests fail without any fault", sep="\n")
            return 1
    print(f"{sum(caught)} of {len(caught)} faults are caught")
    return 0 if caught and all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
