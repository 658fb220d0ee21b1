"""Encrypted PDFs: a child tries the passwords of this file's folders only."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from harness.lasting_pool import LastingPdf
from pydantic import SecretStr
from samples.locks import lock
from samples.paper import pdf

from storage.errors import PasswordProtected
from storage.pdf.passwords import Passwords
from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings

PLAIN = pdf("Salaries\nThe marzipan bonus is paid in May.", "A second page.")
FOREIGN = Path(__file__).parents[2] / "pdfs" / "libreoffice-writer-password.pdf"


@dataclass
class Bunch:
    """A keyring that maps file names to passwords."""

    given: dict[str, Passwords] = field(default_factory=dict)
    wrong: list[tuple[str, int]] = field(default_factory=list)

    def give(self, name: str, *passwords: str, missing: int = 0) -> None:
        """Set the passwords of this file name."""
        self.given[name] = Passwords(tuple(map(SecretStr, passwords)), missing)

    async def passwords_of(self, sha256: str) -> Passwords:
        """Return the passwords of a content."""
        return self.given.get(sha256, Passwords())

    def note_wrong(self, sha256: str, tried: Passwords) -> None:
        """Record a failed attempt."""
        self.wrong.append((sha256, len(tried.found)))


@pytest.fixture
def bunch() -> Bunch:
    return Bunch()


@pytest.fixture
def locked(bunch: Bunch) -> PdfProcess:
    """A PDF process with that keyring."""
    return LastingPdf(StorageSettings(), bunch)


def put(folder: Path, data: bytes, name: str = "locked") -> Path:
    """Write a file for the process to open."""
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("method", ["RC4_40", "RC4_128", "AES_128", "AES_256"])
@pytest.mark.parametrize("password", ["open sesame", "Schlüssel-é"])
async def test_the_right_password_opens_a_file_even_as_the_second(
    locked: PdfProcess, bunch: Bunch, tmp_path: Path, method: str, password: str
) -> None:
    """Covers every encryption method, non-ASCII letters, and accents in decomposed form."""
    path = put(tmp_path, lock(PLAIN, password, method))
    bunch.give("locked", "wrong", unicodedata.normalize("NFD", password))
    assert "marzipan bonus" in (await locked.read(path)).pages[0].text
    assert (await locked.render(path, 2, 72)).data.startswith(b"\x89PNG")


async def test_passwords_in_any_script_open_aes_256(locked: PdfProcess, bunch: Bunch, tmp_path: Path) -> None:
    """Covers Cyrillic user and owner passwords."""
    path = put(tmp_path, lock(PLAIN, "пароль"))
    for password in ("пароль", "пароль-owner"):
        bunch.give("locked", password)
        assert len((await locked.read(path)).pages) == 2


async def test_a_file_locked_by_another_program_opens(locked: PdfProcess, bunch: Bunch) -> None:
    """Covers LibreOffice."""
    bunch.give(FOREIGN.name, "openpassword")
    assert (await locked.read(FOREIGN)).pages[0].text


async def test_all_kinds_of_children_open_a_locked_file(
    locked: PdfProcess, bunch: Bunch, tmp_path: Path
) -> None:
    """Covers layout and OCR besides reading and rendering."""
    path = put(tmp_path, lock(PLAIN, "open"))
    with pytest.raises(PasswordProtected):
        await locked.fetch_layout(path, 1, 2)
    bunch.give("locked", "open")
    assert await locked.fetch_layout(path, 1, 2)
    assert b"marzipan" in await locked.fetch_ocr(path, 1)


async def test_a_file_that_stays_locked_says_what_was_tried(
    locked: PdfProcess, bunch: Bunch, tmp_path: Path
) -> None:
    """The message differs for no password, a wrong one, several, and an unresolvable one."""
    path = put(tmp_path, lock(PLAIN, "open"))
    advice = "save a copy without one, or ask an admin to give its folder the right one"

    async def refusal() -> str:
        with pytest.raises(PasswordProtected) as caught:
            await locked.read(path)
        assert advice in str(caught.value)
        return str(caught.value).partition(":")[0]

    assert await refusal() == "the PDF opens only with a password"
    bunch.give("locked", "hush")
    assert (await refusal()).endswith("password; the one that was given for it does not open it")
    bunch.give("locked", "hush", "hushhush", missing=1)
    said = await refusal()
    assert "; none of the 2 that were given for it opens it; 1 configured password could not" in said
    assert "hush" not in said + repr(bunch.given)
    assert bunch.wrong == [("locked", 1), ("locked", 2)]
    bunch.give("locked", "open")
    assert (await locked.read(path)).pages
    assert len(bunch.wrong) == 2


async def test_a_password_is_tried_on_no_other_file(locked: PdfProcess, bunch: Bunch, tmp_path: Path) -> None:
    """Shows that two files with each other's passwords stay locked."""
    first, second = (put(tmp_path, lock(PLAIN, name), name) for name in ("first", "second"))
    bunch.give("first", "second")
    bunch.give("second", "first")
    for path in (first, second):
        with pytest.raises(PasswordProtected):
            await locked.read(path)


async def test_a_long_list_of_long_passwords_is_tried_to_its_end(
    locked: PdfProcess, bunch: Bunch, tmp_path: Path
) -> None:
    """Shows that no message between the processes limits it."""
    path = put(tmp_path, lock(PLAIN, "open", "RC4_128"))
    bunch.give("locked", *(f"{number:03}" + 4000 * "ü" for number in range(200)), "open")
    assert len((await locked.read(path)).pages) == 2


@pytest.mark.engine("root")
async def test_the_fork_server_never_holds_a_password(
    locked: PdfProcess, bunch: Bunch, tmp_path: Path
) -> None:
    """Shows that the next child, which opens another file, inherits none; nor are any in its arguments."""
    path = put(tmp_path, lock(PLAIN, "sesame-4711"))
    bunch.give("locked", "wrong-0815", "sesame-4711")
    await locked.read(path)
    process = Path(f"/proc/{locked.pid}")
    held = memory(process)
    assert b"max_pages" in held  # sanity check: the job was found
    told = held + (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    assert b"sesame-4711" not in told
    assert b"wrong-0815" not in told


def memory(process: Path) -> bytes:
    """Return all writable memory of a process."""
    held = []
    with (process / "mem").open("rb", 0) as file:
        for line in (process / "maps").read_text().splitlines():
            places, rights, *_ = line.split()
            first, last = (int(place, 16) for place in places.split("-"))
            if rights.startswith("rw"):
                file.seek(first)
                held.append(file.read(last - first))
    return b"".join(held)
