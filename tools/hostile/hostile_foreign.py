"""Files that are not PDFs, whatever their names say."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from random import Random

from tools.hostile.hostile_raw import one_page, text


def _html(rng: Random) -> bytes:
    return f"<html><head><title>{rng.random()}</title></head><body><h1>Not a PDF</h1></body></html>".encode()


def _claiming_html(rng: Random) -> bytes:
    return b"<!-- %PDF-1.7 -->" + _html(rng)


def _svg(rng: Random) -> bytes:
    return f'<svg xmlns="http://www.w3.org/2000/svg"><text x="{rng.random()}">%PDF-1.4</text></svg>'.encode()


def _png(rng: Random) -> bytes:
    side = rng.randint(1, 90)
    rows = b"".join(b"\0" + rng.randbytes(side * 3) for _ in range(side))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows))]
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in [*chunks, (b"IEND", b"")]
    )
    return b"\x89PNG\r\n\x1a\n" + body


def _zip(rng: Random) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(zipfile.ZipInfo("word/document.xml"), f"<w:document>{rng.random()}</w:document>")
    return packed.getvalue()


def _empty(_: Random) -> bytes:
    return b""


def _blank(rng: Random) -> bytes:
    return rng.choice([b"\0", b" ", b"\n"]) * rng.randint(1, 5000)


def _noise(rng: Random) -> bytes:
    return rng.randbytes(rng.randint(1, 20_000))


def _noise_with_header(rng: Random) -> bytes:
    return b"%PDF-1.7\n" + rng.randbytes(rng.randint(1, 20_000)) + rng.choice([b"", b"\n%%EOF\n"])


def _header_alone(rng: Random) -> bytes:
    return b"%PDF-1." + str(rng.randint(0, 9)).encode() + rng.choice([b"", b"\n", b"\n%%EOF", b"\r%%EOF\r"])


def _late_header(rng: Random) -> bytes:
    return b"A letter about PDFs.\n" * rng.randint(60, 300) + one_page(text("Late header"))


def _wide_text(rng: Random) -> bytes:
    return f"%PDF-1.7 but in UTF-16 {rng.random()}".encode("utf-16")


FOREIGN = {
    "html": _html,
    "html that claims": _claiming_html,
    "svg that claims": _svg,
    "png": _png,
    "zip": _zip,
    "empty": _empty,
    "blank": _blank,
    "noise": _noise,
    "noise with header": _noise_with_header,
    "header alone": _header_alone,
    "header too late": _late_header,
    "utf-16 text": _wide_text,
}
