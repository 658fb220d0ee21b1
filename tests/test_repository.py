"""Repository contents: hashed locks, and no binaries, secrets or paths of one machine."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from harness.tables import for_each
from sources import ROOT, committed

LOCKS = [*ROOT.glob("requirements*.txt"), ROOT / "deploy" / "go.txt", ROOT / "deploy" / "data.txt"]
SAMPLE_BYTES = 200_000
MARKERS = ("__init__.py", "py.typed")  # these have a meaning without content
# Samples, the README's screenshot and the icons of the Teams package.
SMALL_BINARIES = (".pdf", ".png")
SECRETS = re.compile(
    rb"xox[bpas]-\d{9,}-\w{10,}|xapp-\d-[A-Z0-9]{9,}-\d{9,}-\w{20,}|sk-(?:proj-)?[A-Za-z0-9]{32,}"
    rb"|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|-----BEGIN (?:RSA |EC |OPENSSH )?PRIVATE KEY-----"
)
MACHINE_PATHS = re.compile(rb"(?<![\w.<>})])/(?:(?:home|Users)/\w+|root|work|opt/wheels)/[a-z]")
NEWLINE = b"\n"
# SHA-256 of the text published by the Free Software Foundation.
AGPL_3 = "0d96a4ff68ad6d4b6f1f30f713b18d5184912ba8dd389f86aa7710db079abcb0"


def is_binary(path: Path) -> bool:
    """True if the file is not text."""
    return b"\0" in path.read_bytes() or path.suffix == ".pdf"


def matches(pattern: re.Pattern[bytes]) -> list[str]:
    """Return the committed lines that match a pattern, except this file's own patterns."""
    return [
        f"{path.relative_to(ROOT)}:{data.count(NEWLINE, 0, found.start()) + 1}"
        for path in committed()
        if path != Path(__file__) and not is_binary(path)
        for data in [path.read_bytes()]
        for found in pattern.finditer(data)
    ]


@for_each("lock", [path.name for path in LOCKS])
def test_every_locked_package_has_a_hash_and_no_url(lock: str) -> None:
    """Shows that an installation gets exactly the reviewed files, from any index."""
    (text,) = (path.read_text() for path in LOCKS if path.name == lock)
    entries = re.findall(r"(?m)^[a-z0-9][^\n]*(?:\n    --hash[^\n]*)*", text)
    assert entries
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in text


def test_no_text_is_empty() -> None:
    """Shows that no merge has emptied a file."""
    empty = [path for path in committed() if not path.stat().st_size and path.name not in MARKERS]
    assert empty == []


def test_only_small_samples_and_images_are_binary() -> None:
    """Shows that generated and downloadable files are not committed."""
    strays = [
        str(path)
        for path in committed()
        if is_binary(path) and (path.suffix not in SMALL_BINARIES or path.stat().st_size >= SAMPLE_BYTES)
    ]
    assert strays == []


def test_every_folder_with_sample_pdfs_states_their_licence() -> None:
    """Shows that the licence of every sample is stated."""
    folders = {path.parent for path in committed() if path.suffix == ".pdf"}
    assert [str(folder) for folder in folders if not states_a_licence(folder)] == []


def states_a_licence(folder: Path) -> bool:
    """True if a LICENSE.md or README.md next to the samples names a licence."""
    pages = [folder / "LICENSE.md", folder / "README.md"]
    return any("CC" in page.read_text(encoding="utf-8") for page in pages if page.is_file())


def test_no_secret_is_committed() -> None:
    """Covers tokens of Slack, OpenAI, AWS and GitHub, and private keys."""
    assert matches(SECRETS) == []


def test_no_path_of_one_machine_is_committed() -> None:
    """Shows that no file depends on a developer's machine."""
    assert matches(MACHINE_PATHS) == []


def test_the_licence_is_the_whole_agpl() -> None:
    """Shows that LICENSE is the text of the Free Software Foundation, byte by byte."""
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == AGPL_3


def test_the_patterns_match() -> None:
    """Shows that the checks above can fail."""
    assert SECRETS.search(b"SLACK_BOT_TOKEN=xoxb-" + b"1234567890-abcdefghijkl")
    assert MACHINE_PATHS.search(b'open("' + b"/home/" + b'somebody/x")')
    assert not MACHINE_PATHS.search(b"https://example.com/work/x and <user>/home/x")
