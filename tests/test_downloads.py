"""Downloads: every fetched file is pinned by hash, as listed in docs/packages.md."""

from __future__ import annotations

import ast
import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from engines import FetchError
from engines.support.go_modules import GoModule
from engines.support.npm import NpmPackage
from harness.tables import for_each
from sources import ROOT, committed

PAGE = (ROOT / "docs" / "packages.md").read_text(encoding="utf-8")
CODE = {".py", ".sh", ".js", ".mjs", ".yaml", ".yml", ".service", ".toml", ""}
PIP = re.compile(r"\bpip (?:install|download)\b")
FETCHES = re.compile(
    rf"{PIP.pattern}|\buv pip compile\b|\bnpm (?:ci|install|pack|exec)\b"
    r"|\b_npm .{0,60}\b(?:ci|install|pack|exec)\b|(?<!sudo )\bapt-get\b"
    r"|\bmmdebstrap --|\bmod download\b|(?m:^ *image: |^ARG BASE=)"
)
NEVER = re.compile(
    r"\b(?:curl|wget) -|\burlretrieve\b|\bgit clone\b|\bnpx \S|\bgo (?:install|get|run) \S+@"
    r"|\b(?:docker|podman) pull\b|\bplaywright install\b|\b(?:hf_hub|snapshot)_download\b|\btorch\.hub\b"
    r"|\bfrom_pretrained\b"
)
# A Python file without any of these words is skipped.
TOOLS = re.compile(
    r'"(?:pip|go|mod|clone|pull)"|_npm|"npm|npx|apt-get|mmdebstrap|curl|wget|urlretrieve|_download|_pretrained|torch'
)
CHECKED, WHEELS_ONLY, OURS = "--require-hashes", "--only-binary=:all:", "--no-build-isolation -e ."


def code_files() -> Iterator[Path]:
    """Yield every committed file with executable content."""
    for path in committed():
        if path.suffix in CODE and path not in (Path(__file__), ROOT / "LICENSE"):
            yield path


def plain(text: str, between: str = r" \t") -> str:
    """Return commands like a shell sees them: joined lines, list literals without quotes and commas."""
    return re.sub(rf"""[{between}"'\[\](),]+""", " ", text.replace("\\\n", " "))


@cache
def units() -> list[tuple[str, str]]:
    """Return (file, unit) pairs: functions or statements for Python, lines for other files."""
    return [(str(path.relative_to(ROOT)), unit) for path in code_files() for unit in units_of(path)]


def units_of(path: Path) -> list[str]:
    """Return the parts of a file, each with whole commands."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return plain(text).splitlines()
    if not TOOLS.search(text):
        return []
    lines, tree = text.splitlines(), ast.parse(text)
    blocks = [
        part for node in tree.body for part in (node.body if isinstance(node, ast.ClassDef) else [node])
    ]
    return [plain("\n".join(lines[block.lineno - 1 : block.end_lineno]), r"\s") for block in blocks]


def fetching() -> set[str]:
    """Return the files with a command that fetches something."""
    return {path for path, unit in units() if FETCHES.search(unit)}


def rows() -> dict[str, str]:
    """Return the pinning of each file in the table "What is fetched"."""
    table = PAGE.split("## What is fetched")[1].split("\n## ")[0]
    cells = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| `")]
    return {name: row[2].strip() for row in cells for name in re.findall(r"`([^`]+)`", row[0])}


def test_the_page_lists_how_each_fetching_file_is_pinned() -> None:
    """Shows that every fetching command is listed."""
    assert fetching() == set(rows())
    assert all(rows().values())


def test_nothing_is_fetched_by_a_command_that_checks_no_hash() -> None:
    """Shows that no command uses curl, git clone, docker pull or a model hub."""
    assert [(path, hit[0]) for path, unit in units() for hit in NEVER.finditer(unit)] == []


def test_pip_installs_only_locked_wheels() -> None:
    """Shows that each package has a known hash, and that no build tool comes without one."""
    commands = [unit for _, unit in units() if PIP.search(unit)]
    told = [unit for unit in commands if "make lock needs uv" in unit]
    checked = [unit for unit in commands if CHECKED in unit and WHEELS_ONLY in unit]
    assert len(told) == 1
    assert len(checked) >= 6
    assert [unit for unit in commands if unit not in (*told, *checked) and OURS not in unit] == []


def test_every_archive_of_npm_has_its_hash() -> None:
    """Covers single archives, and all packages named by a lock file."""
    single = [
        ast.literal_eval(call.args[2])
        for path in (ROOT / "tests" / "engines").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "NpmPackage"
    ]
    assert len(single) >= 5
    assert {len(base64.b64decode(sha512)) for sha512 in single} == {64}
    locks = [path for path in committed() if path.name == "package-lock.json"]
    packages = [
        (name, one) for path in locks for name, one in json.loads(path.read_text())["packages"].items()
    ]
    assert packages
    assert [
        name for name, one in packages if name and not one.get("integrity", "").startswith("sha512-")
    ] == []
    assert [name for name, one in packages if "resolved" in one] == []


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder at the front of PATH, with another cache folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache" / "footnote").mkdir(parents=True)
    return folder


def write_program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("lock", sorted(ROOT.glob("requirements*.txt")), ids=lambda path: path.name)
def test_the_locked_pip_installs_all_other_packages(tmp_path: Path, lock: Path) -> None:
    """Shows that Python's bundled pip installs only one package by hash: the current pip."""
    programs, log = tmp_path / ".venv" / "bin", tmp_path / "log"
    programs.mkdir(parents=True)
    (tmp_path / "deploy").mkdir()
    script = tmp_path / "deploy" / "install.sh"
    script.write_bytes((ROOT / "deploy" / "install.sh").read_bytes())
    write_program(programs / "pip", f'while [ "$1" ]; do [ "$1" = -r ] && cat "$2"; shift; done >> {log}')
    write_program(programs / "python", "exit")
    subprocess.run(["bash", script, lock], capture_output=True, check=True)
    first, all_else = log.read_text()[: -lock.stat().st_size], log.read_text()[-lock.stat().st_size :]
    assert all_else == lock.read_text()
    assert re.findall(r"(?m)^[a-z0-9][^ ;]*", first)[0].startswith("pip==")
    assert len(re.findall(r"(?m)^[a-z0-9]", first)) == 1
    assert "--hash=sha256:" in first


@pytest.fixture
def another_module(bin_folder: Path, tmp_path: Path) -> Path:
    """Return a fake go whose proxy serves another module; ``built`` exists once it builds."""
    go, files = bin_folder / "go", tmp_path / "files"
    files.mkdir()
    reply = {"Dir": str(files), "Sum": "h1:another"}
    (tmp_path / "reply").write_text(json.dumps(reply, indent="\t"))
    write_program(
        go, f'case "$1" in mod) cat {tmp_path}/reply;; build) touch {tmp_path}/built; touch "$3";; esac'
    )
    return go


@pytest.mark.parametrize(("checksum", "status"), [("h1:pinned", 1), ("h1:another", 0)])
def test_no_program_is_built_from_another_go_module(
    another_module: Path, tmp_path: Path, checksum: str, status: int
) -> None:
    """Shows that the hash of Weaviate's and promtool's sources is compared before the build."""
    target = tmp_path / "target" / "server"
    target.parent.mkdir()
    script = ROOT / "deploy" / "go_program.sh"
    command = [script, another_module, "example.org/server@v1.2.3", checksum, "./cmd/server", target]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, (tmp_path / "built").exists(), target.exists()) == (
        status, not status, not status,
    )  # fmt: skip
    assert ("not the one that was pinned: h1:another" in done.stderr) == bool(status)
    assert [path.name for path in target.parent.iterdir()] == ([] if status else ["server"])


def test_no_file_is_read_from_another_go_module(another_module: Path) -> None:
    """Shows that test files from a Go module are verified by the hash in their test."""
    with pytest.raises(FetchError, match="not the module that was pinned"):
        GoModule("example.org/schema/v2", "v2.0.0", "h1:pinned").fetch()


def test_nothing_is_unpacked_from_another_archive_of_npm(bin_folder: Path) -> None:
    """Shows that an npm archive is compared with our hash, not the registry's."""
    write_program(bin_folder / "npm", "echo other > thing-1.0.0.tgz")
    package = NpmPackage("thing", "1.0.0", "A" * 86 + "==")
    with pytest.raises(FetchError, match="not the archive that was pinned"):
        package.fetch()
    assert not package.folder.exists()


@for_each(
    "command",
    [
        'run(["pip", "download", "-q", name])', "pip install \\\n    x", '_npm(x, "pack", "y")',
        "npm install", "apt-get -y install x", '["apt-get", "update"]', '(go(), "mod", "download", "x@y")',
        "    image: x:1",
    ],
)  # fmt: skip
def test_the_pattern_finds_fetching_commands(command: str) -> None:
    """Shows that the checks above can fail."""
    assert FETCHES.search(plain(command))


@for_each(
    "command", ["curl -fsSL x | sh", "urlretrieve(x)", "npx x", '["go", "install", "x@v1"]', "docker pull x"]
)
def test_the_pattern_finds_forbidden_commands(command: str) -> None:
    """Shows that the check above can fail."""
    assert NEVER.search(plain(command))
