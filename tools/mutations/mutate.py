"""Checks that each fault of the list is caught: ``make mutate``, or some: ``make mutate ONLY=words``.

Each fault is applied to its own copy of the tree in a temporary folder, and its test is run there. A copy has
its own Python environment, which finds the copy's packages first and then the installed libraries, so that
programs that tests start with ``python -I`` import the copy's code, too.

Exit status: 0 if every fault is caught; 1 if one is not, if the text that it changes is gone, or if a test
fails without any fault.
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
# pytest exit codes of a completed run; all others mean that the tests did not run.
PASSED, FAILED = 0, 1


def copy_tree(target: Path) -> None:
    """Copy the product and its tests, with an environment that imports the copy."""
    for name in COPIED:
        source = TREE / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("*.onnx"))
        else:
            shutil.copy2(source, target / name)
    (target / MODEL).symlink_to(TREE / MODEL)  # 23 MB that need not be copied
    venv.create(target / ".venv", symlinks=True)
    (packages,) = (target / ".venv" / "lib").glob("python*/site-packages")
    (packages / "copy.pth").write_text(f"{target}\n{sysconfig.get_path('purelib')}\n")


def run_tests(tree: Path, *tests: str, seconds: int = MAX_SECONDS) -> subprocess.CompletedProcess[str]:
    """Run tests in a copy until the first failure.

    Raises:
        subprocess.TimeoutExpired: they hang.
    """
    command = [tree / ".venv/bin/python", "-m", "pytest", "-x", f"--basetemp={tree / 'tmp'}", *tests]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False, timeout=seconds)


def outcome_of(mutation: Mutation, tree: Path) -> str:
    """Return the outcome of a fault in its copy: CAUGHT, or what is wrong."""
    copy_tree(tree)
    file = tree / mutation.file
    text = file.read_text()
    if text.count(mutation.before) != 1:
        return f"its text does not occur exactly once in {mutation.file}"
    file.write_text(text.replace(mutation.before, mutation.after))
    try:
        status = run_tests(tree, mutation.test).returncode
    except subprocess.TimeoutExpired:
        return "its test hangs"
    return {FAILED: CAUGHT, PASSED: "SURVIVED"}.get(status, f"pytest ended with {status}")


def is_caught(folder: Path, number: int, mutation: Mutation) -> bool:
    """Try a fault in a temporary copy and print the outcome; return True if it is caught."""
    begun, tree = time.monotonic(), folder / str(number)
    try:
        outcome = outcome_of(mutation, tree)
    finally:
        shutil.rmtree(tree, ignore_errors=True)
    print(f"{outcome}: {mutation.fault} ({time.monotonic() - begun:.0f} s)", flush=True)
    return outcome == CAUGHT


def main() -> int:
    """Run the tests without faults, and each fault with its test; return the exit status."""
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
