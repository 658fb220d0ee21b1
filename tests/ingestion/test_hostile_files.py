"""Hundreds of hostile files at once: each ends live or with a message, and the service is unaffected."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from harness.hostile_run import CHANNEL, SECRET, besieged, make_files

from storage.embeddings.onnx_embedder import BundledEmbedder

FILES = 160
LEAST = 150
GIGABYTE = 1 << 30


@pytest.mark.long
@pytest.mark.timeout(2400)
async def test_many_hostile_files_never_harm_the_service(
    tmp_path: Path, embedder: BundledEmbedder, seed: int
) -> None:
    """Shows that no file hangs, hides its text or takes a child over 1 GB."""
    folder = tmp_path / "files"
    await make_files(folder, seed=seed, first=0, count=FILES)
    contents = {hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.pdf")}
    assert len(contents) >= LEAST
    async with besieged(tmp_path / "home", embedder) as siege:
        endings = await siege.withstand(folder)
        assert not await siege.home.find(CHANNEL, SECRET)
    assert len(endings) == FILES
    faults = [f"{one.number} ({one.kind}) {one.fault}" for one in endings if one.fault]
    assert not faults, "\n".join(faults)
    assert max(one.peak for one in endings) <= GIGABYTE
