"""Damage to healthy PDFs, as done by disks, networks and fuzzers."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from tools.hostile.hostile_bases import bases

Damage = Callable[[Random, bytearray], bytes | bytearray]

TOKENS = (
    b"<<", b">>", b"[", b"]", b"(", b")", b"<", b"stream\n", b"endstream", b"endobj", b"obj", b"/Kids",
    b"/Type/Pages", b"/Parent", b"null", b"R", b"\0", b"%", b"/Filter/FlateDecode", b"startxref",
    b"xref", b"trailer", b"/Length",
)  # fmt: skip
NUMBERS = (
    0,
    1,
    -1,
    2,
    255,
    256,
    65_535,
    65_536,
    8_388_607,
    8_388_608,
    2**31 - 1,
    2**31,
    2**32,
    10**12,
    -(2**31),
)


def _place(rng: Random, data: bytearray) -> int:
    return rng.randrange(len(data))


def _cut(rng: Random, data: bytearray) -> bytes:
    """Truncate, as a copy or download that broke off."""
    return bytes(data[: _place(rng, data)])


def _cut_but_ended(rng: Random, data: bytearray) -> bytes:
    return _cut(rng, data) + b"\n%%EOF\n"


def _behead(rng: Random, data: bytearray) -> bytes:
    return bytes(data[rng.randrange(1, min(len(data), 4000)) :])


def _flip(rng: Random, data: bytearray) -> bytearray:
    for _ in range(rng.choice([1, 5, 50, 500])):
        data[_place(rng, data)] ^= 1 << rng.randrange(8)
    return data


def _swap(rng: Random, data: bytearray) -> bytearray:
    size = rng.choice([8, 64, 512])
    for _ in range(rng.choice([1, 8])):
        one, other = (rng.randrange(max(1, len(data) - size)) for _ in range(2))
        kept = bytes(data[one : one + size])
        data[one : one + size], data[other : other + size] = data[other : other + size], kept
    return data


def _double(rng: Random, data: bytearray) -> bytearray:
    at, size = _place(rng, data), rng.choice([16, 256, 4096])
    data[at:at] = bytes(data[at : at + size]) * rng.choice([1, 2, 30])
    return data


def _lose(rng: Random, data: bytearray) -> bytearray:
    for _ in range(rng.choice([1, 4])):
        at = _place(rng, data)
        del data[at : at + rng.choice([1, 16, 512, 4096])]
        if not data:
            break
    return data


def _blank(rng: Random, data: bytearray) -> bytearray:
    """Zero out a block, as a disk does that lost one."""
    at = _place(rng, data) // 512 * 512
    size = min(rng.choice([512, 4096]), len(data) - at)
    data[at : at + size] = bytes(size)
    return data


def _splice(rng: Random, data: bytearray) -> bytes:
    """Join the head of one file and the tail of another."""
    other = rng.choice(bases())
    return bytes(data[: _place(rng, data)]) + other[rng.randrange(len(other)) :]


def _insert(rng: Random, data: bytearray) -> bytearray:
    for _ in range(rng.choice([1, 4, 30])):
        at = _place(rng, data)
        data[at:at] = rng.choice(TOKENS)
    return data


def _renumber(rng: Random, data: bytearray) -> bytes:
    """Change numbers outside of streams: lengths, counts, references, boxes."""
    places = [found.span() for found in re.finditer(rb"(?<=[ \[/])\d{1,6}(?=[ \]/>\r\n])", data)] or [(0, 0)]
    for start, end in sorted(rng.sample(places, min(len(places), rng.choice([1, 3, 20]))), reverse=True):
        data[start:end] = str(rng.choice(NUMBERS)).encode()
    return bytes(data)


def _table(rng: Random, data: bytearray) -> bytes:
    """Corrupt the cross-reference table or the way to it."""
    far = str(rng.choice([0, 9, 10**9, 2**63, -5, rng.randrange(len(data))])).encode()
    changes: list[Callable[[bytes], bytes]] = [
        lambda whole: re.sub(rb"startxref\s+\d+", b"startxref\n" + far, whole),
        lambda whole: re.sub(rb"(?m)^\d{10} ", lambda _: b"%010d " % rng.randrange(10**10), whole),
        lambda whole: whole.replace(b"/Size ", b"/Prev %b/Size " % far),
        lambda whole: re.sub(rb"/Size \d+", b"/Size " + far, whole),
        lambda whole: re.sub(rb"/Root \d+", b"/Root %d" % rng.randrange(99), whole),
        lambda whole: whole.replace(b"trailer", b"tralier"),
        lambda whole: re.sub(rb"/W ?\[[^\]]*\]", b"/W[%b %b 9]" % (far, far), whole),
        lambda whole: re.sub(rb"/Index ?\[[^\]]*\]", b"/Index[0 %b]" % far, whole),
    ]
    return rng.choice(changes)(bytes(data)) + b"%% %d" % rng.randrange(10**9)


def _streams(rng: Random, data: bytearray) -> bytes:
    """Corrupt compressed streams, wholly or in part."""
    inner = [found.span(1) for found in re.finditer(rb"stream\r?\n(.*?)endstream", data, re.S)]
    for start, end in rng.sample(inner, min(len(inner), rng.choice([1, 3, 50]))):
        for _ in range(rng.choice([1, 10])):
            if end > start:
                data[rng.randrange(start, end)] = rng.randrange(256)
    return bytes(data) + b"%% %d" % rng.randrange(10**9)


def _filters(rng: Random, data: bytearray) -> bytes:
    names = [b"LZWDecode", b"DCTDecode", b"JBIG2Decode", b"JPXDecode", b"CCITTFaxDecode", b"ASCII85Decode",
             b"RunLengthDecode", b"Crypt", b"NoDecode", b"ASCIIHexDecode"]  # fmt: skip
    changed = re.sub(rb"FlateDecode", lambda found: rng.choice([found[0], *names]), bytes(data))
    return changed + b"%% %d" % rng.randrange(10**9)


DAMAGES: dict[str, Damage] = {
    "cut off": _cut,
    "cut off, yet ended": _cut_but_ended,
    "beheaded": _behead,
    "bits flipped": _flip,
    "blocks swapped": _swap,
    "blocks doubled": _double,
    "blocks lost": _lose,
    "blocks of zeros": _blank,
    "two files spliced": _splice,
    "tokens inserted": _insert,
    "numbers changed": _renumber,
    "table damaged": _table,
    "streams damaged": _streams,
    "filters changed": _filters,
}


def damaged(kind: str, rng: Random) -> bytes:
    """Return a healthy file with this damage, and in one of five cases with another one, too."""
    data = bytes(DAMAGES[kind](rng, bytearray(rng.choice(bases()))))
    if data and rng.random() < 0.2:
        data = bytes(DAMAGES[rng.choice(list(DAMAGES))](rng, bytearray(data)))
    return data
