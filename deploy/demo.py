"""``make demo``: drops PDFs into the watched folder of the console channel, then becomes ``footnote serve``.

Each index and each folder of PDFs has a home of its own, so the same command finds everything read.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import sys
from pathlib import Path
from shlex import quote

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "deploy" / "samples"
CHANNEL = "demo"


def main() -> None:
    """Copy what is new, then serve."""
    asked = read_arguments()
    home = home_of(asked.docs, asked.weaviate)
    drop(pdfs_of(asked.docs), asked.docs, home)
    os.environ["FOOTNOTE_HOME"] = str(home)
    if asked.weaviate:
        os.environ["WEAVIATE_URL"] = asked.weaviate
    print(f"Home       {home}; for other commands on it:", file=sys.stderr)
    print(f"           export FOOTNOTE_HOME={quote(str(home))}", file=sys.stderr)
    footnote = Path(sys.executable).with_name("footnote")
    os.execv(footnote, [str(footnote), "serve", "--port", str(asked.port)])  # noqa: S606


def read_arguments() -> argparse.Namespace:
    """What the Makefile passes on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path, default=SAMPLES, help="folder with PDFs, at any depth")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--weaviate", default="", help="empty, embedded, or the URL of a server")
    asked = parser.parse_args()
    asked.docs = asked.docs.expanduser()
    return asked


def pdfs_of(docs: Path) -> list[Path]:
    """The PDFs below a folder; ends the program with a sentence when there are none."""
    if not docs.is_dir():
        sys.exit(f"DOCS={docs} is not a folder")
    pdfs = sorted(path for path in docs.rglob("*") if path.suffix.lower() == ".pdf" and path.is_file())
    if not pdfs:
        sys.exit(f"DOCS={docs} holds no PDF")
    return pdfs


def home_of(docs: Path, weaviate: str) -> Path:
    """Where this demo keeps everything: one place for each index and folder of PDFs."""
    index = "" if not weaviate else "-weaviate" if weaviate == "embedded" else "-" + plain(weaviate)
    folder = docs.resolve()
    own = "" if folder == SAMPLES.resolve() else f"-{plain(folder.name)}-{digest(str(folder))}"
    return ROOT / ".footnote" / f"demo{index}{own}"


def plain(text: str) -> str:
    """The text as it can stand in a file name."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()


def digest(text: str) -> str:
    """Eight characters that tell two folders of one name apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def drop(pdfs: list[Path], docs: Path, home: Path) -> int:
    """Copy what the watched folder lacks or has otherwise; returns how many files that were."""
    inbox = home / "inbox" / CHANNEL
    changed = [(pdf, inbox / pdf.relative_to(docs)) for pdf in pdfs]
    changed = [(pdf, target) for pdf, target in changed if look(pdf) != look(target)]
    if changed:
        print(f"Copying {len(changed)} PDFs into the watched folder…", file=sys.stderr)
    for pdf, target in changed:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Written beside the inbox and moved in whole, with its time: the next run sees it unchanged.
        shutil.copy2(pdf, home / "arriving")
        (home / "arriving").replace(target)
    return len(changed)


def look(path: Path) -> tuple[int, int] | None:
    """Size and time of a file, None when it is not there."""
    if not path.exists():
        return None
    found = path.stat()
    return found.st_size, found.st_mtime_ns


if __name__ == "__main__":
    main()
