"""Own a PDF process, let it read a bomb, and wait to be killed: ``python own_and_hang.py BOMB``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from storage.pdf.pdf_process import PdfProcess
from storage.settings import StorageSettings


async def main() -> None:
    process = PdfProcess(StorageSettings(read_seconds=60))
    await process.start()
    print(process.pid, flush=True)
    await process.read(Path(sys.argv[1]))


if __name__ == "__main__":
    asyncio.run(main())
