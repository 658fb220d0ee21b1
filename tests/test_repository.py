"""What is committed: locks with hashes, no binaries, no secrets, no addresses of one machine."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from harness.tables import for_each
from sources import ROOT, committed

LOCKS = [*ROOT.glob("requirements*.txt"), ROOT / "deploy" / "go.txt", ROOT / "deploy" / "data.txt"]
SAMPLE_BYTES = 200_000
MARKERS = ("__init__.py", "py.typed")  # these say something by being there
# Samples, the README's screenshot and the icons that a Teams package must hold.
SMALL_BINARIES = (".pdf", ".png")
SECRETS = re.compile(
    rb"xox[bpas]-\d{9,}-\w{10,}|xapp-\d-[A-Z0-9]{9,}-\d{9,}-\w{20,}|sk-(?:proj-)?[A-Za-z0-9]{32,}"
    rb"|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|-----BEGIN (?:RSA |EC |OPENSSH )?PRIVATE KEY-----"
)
MACHINE_PATHS = re.compile(rb"(?<![\w.<>})])/(?:(?:home|Users)/\w+|root|work|opt/wheels)/[a-z]")
NEWLINE = b"\n"
# SHA-256 of the text as the Free Software Foundation publishes it.
AGPL_3 = "0d96a4ff68ad6d4b6f1f30f713b18d5184912ba8dd389f86aa7710db079abcb0"


def is_binary(path: Path) -> bool:
    """True if the file is not text."""
    return b"\0" in path.read_bytes() or path.suffix == ".pdf"


def matches(pattern: re.Pattern[bytes]) -> list[str]:
    """Return the committed lines that a pattern occurs in, this file's own patterns left out."""
    return [
        f"{path.relative_to(ROOT)}:{data.count(NEWLINE, 0, found.start()) + 1}"
        for path in committed()
        if path != Path(__file__) and not is_binary(path)
        for data in [path.read_bytes()]
        for found in pattern.finditer(data)
    ]


@for_each("lock", [path.name for path in LOCKS])
def test_every_locked_package_has_a_hash_and_no_address(lock: str) -> None:
    """Shows that an installation gets the files we looked at, from wherever it fetches them."""
    (text,) = (path.read_text() for path in LOCKS if path.name == lock)
    entries = re.findall(r"(?m)^[a-z0-9][^\n]*(?:\n    --hash[^\n]*)*", text)
    assert entries
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in text


def test_no_text_is_empty() -> None:
    """Shows that no merge has emptied a file."""
    empty = [path for path in committed() if not path.stat().st_size and path.name not in MARKERS]
    assert empty == []


def test_nothing_binary_is_committed_but_small_samples_and_pictures() -> None:
    """Shows that whatever can be built or fetched is not kept in the repository."""
    strays = [
        str(path)
        for path in committed()
        if is_binary(path) and (path.suffix not in SMALL_BINARIES or path.stat().st_size >= SAMPLE_BYTES)
    ]
    assert strays == []


def test_every_folder_with_sample_pdfs_states_their_licence() -> None:
    """Shows that nobody has to guess whether a sample may be used."""
    folders = {path.parent for path in committed() if path.suffix == ".pdf"}
    assert [str(folder) for folder in folders if not states_a_licence(folder)] == []


def states_a_licence(folder: Path) -> bool:
    """True if a LICENSE.md or README.md beside the samples names one."""
    pages = [folder / "LICENSE.md", folder / "README.md"]
    return any("CC" in page.read_text(encoding="utf-8") for page in pages if page.is_file())


def test_no_secret_is_committed() -> None:
    """Shows that no token of Slack, OpenAI, AWS or GitHub and no private key lies in a file."""
    assert matches(SECRETS) == []


def test_no_path_of_one_machine_is_committed() -> None:
    """Shows that nothing depends on where somebody worked."""
    assert matches(MACHINE_PATHS) == []


def test_the_licence_is_the_whole_agpl() -> None:
    """Shows that LICENSE is the text of the Free Software Foundation to the byte."""
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == AGPL_3


def test_the_patterns_find_what_they_look_for() -> None:
    """Shows that the checks above could fail."""
    assert SECRETS.search(b"SLACK_BOT_TOKEN=xoxb-" + b"1234567890-abcdefghijkl")
    assert MACHINE_PATHS.search(b'open("' + b"/home/" + b'somebody/x")')
    assert not MACHINE_PATHS.search(b"https://example.com/work/x and <user>/home/x")
