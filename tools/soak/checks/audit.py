"""Audit at rest: every file is live with its newest content, and nothing else is anywhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import select

from storage.errors import IncompletePublication, StorageError
from storage.files.reading_files import ReadingFiles
from storage.index.base import Index
from storage.models import TenantName
from storage.queues.inventory import Inventory
from storage.sql.database import Database
from storage.sql.tables import ChannelRow, PublicationRow, ReadingRow
from tools.soak.checks.tally import Tally
from tools.soak.checks.witness import Witness
from tools.soak.rounds.world import Paper, World


@dataclass
class Audit:
    """Compares folders, SQL, index and disk; ``faults`` describes what ``tally`` counts."""

    world: World
    witness: Witness
    database: Database
    index: Index
    home: Path
    tally: Tally = field(default_factory=Tally)
    faults: list[str] = field(default_factory=list)
    # Contents that may be unreadable.
    hostile: set[str] = field(default_factory=set)

    async def is_still(self) -> str | None:
        """Return what is still in progress; None if nothing is left to do."""
        async with self.database.snapshot() as session:
            readings = Counter(await session.scalars(select(ReadingRow.state)))
            publications = Counter(await session.scalars(select(PublicationRow.state)))
        moving = readings["waiting"] + publications["pending"] + publications["retired"]
        if moving:
            return f"{readings['waiting']} readings, {publications['pending']} publications wait"
        for channel in self.world.channels:
            papers = self.world.wanted(channel)
            if (known := await self._answering(channel)) != {f: p.sha256 for f, p in papers.items()}:
                right = sum(known.get(file) == paper.sha256 for file, paper in papers.items())
                return f"{channel}: {right} of {len(papers)} files are as they should be, {len(known)} answer"
        return None

    async def all_answer(self) -> bool:
        """True if every file is live with its newest content, at any rung."""
        for channel in self.world.channels:
            papers = self.world.wanted(channel)
            where = await self.witness.channels.by_name(channel)
            documents = await self.witness.catalog.documents(where.id)
            live = {one.file: one.version for one in documents if one.state == "live"}
            if any(live.get(file) != paper.sha256 for file, paper in papers.items()):
                return False
        return True

    async def _answering(self, channel: str) -> dict[str, str]:
        """Return file -> content of every file that is live at the full rung."""
        where = await self.witness.channels.by_name(channel)
        documents = await self.witness.catalog.documents(where.id)
        return {one.file: one.version for one in documents if one.state == "live" and one.rung == "full"}

    async def compare(self) -> None:
        """Compare folders with live documents, and SQL with index and disk."""
        await self.compare_published()
        await self._compare_blobs()
        await self._compare_readings()

    async def compare_published(self) -> None:
        """Compare folders with live documents, and SQL with the index; blobs may be anywhere."""
        for channel in self.world.channels:
            await self._compare_files(channel, self.world.wanted(channel))
        async with self.database.snapshot() as session:
            tenants = {one.id: TenantName(one.tenant) for one in await session.scalars(select(ChannelRow))}
        for channel_id, tenant in tenants.items():
            await self._compare_tenant(channel_id, tenant)

    async def _compare_files(self, channel: str, papers: dict[str, Paper]) -> None:
        known = await self._answering(channel)
        for file, paper in papers.items():
            found = await self.witness.find(channel, paper.word)
            live = [one for one in found.publications.values() if one.file == file]
            hits = [hit for hit in found.words if hit.publication in {one.id for one in live}]
            flaws = self.witness.flaws(live, hits)
            if known.get(file) != paper.sha256 or flaws or not all(paper.version in hit.text for hit in hits):
                told = f"should be {self._name(paper.sha256)}, is {self._name(known.get(file, ''))} {flaws}"
                self._note("lost", 1, f"{channel}/{file} does not answer as it is now: {told}")
        for file in known.keys() - papers.keys():
            self._note("orphans", 1, f"{channel}/{file} answers and is not there")

    async def _compare_tenant(self, channel_id: int, tenant: TenantName) -> None:
        live = await Inventory(self.database).live(channel_id)
        try:
            held = await self.index.publications(tenant)
        except StorageError:
            held = {}
        for one in live:
            extra = held.pop(one.id, 0) - one.objects
            self._note("duplicates" if extra > 0 else "lost", abs(extra), f"{one.id}: {extra:+d} chunks")
            try:
                await self.index.commit_publication(
                    tenant, one.id, chunks=one.objects, vectors=one.vectors, space=one.space
                )
            except IncompletePublication as lost:
                self._note("lost", 1, str(lost))
        self._note("orphans", sum(held.values()), f"chunks of {len(held)} unknown publications")

    async def _compare_blobs(self) -> None:
        held, wanted = self._copies()
        known: set[str] = set()
        for shelf in {name[:2] for name in held | wanted}:
            known |= (await Inventory(self.database).wanted_blobs([shelf])).keys()
        self._note("orphans", len(held - known), "blobs that nobody wants")
        gone = sorted((known | wanted) - held)
        self._note("lost", len(gone), f"blobs that are gone: {', '.join(map(self._name, gone))}")

    def has_copies(self) -> bool:
        """True if the content of every file is stored."""
        held, wanted = self._copies()
        return held >= wanted

    def _copies(self) -> tuple[set[str], set[str]]:
        """Return (stored contents, contents of all files)."""
        held = {path.name for path in (self.home / "blobs").glob("??/*")}
        return held, {paper.sha256 for papers in self.world.papers.values() for paper in papers.values()}

    async def _compare_readings(self) -> None:
        held = {path.name for path in (self.home / "readings").glob("??/*")}
        async with self.database.snapshot() as session:
            rows = list(await session.scalars(select(ReadingRow)))
        known = {str(row.id) for row in rows if row.state == "done"}
        self._note("orphans", len(held - known), "readings' files that nobody knows")
        for row in [row for row in rows if row.state == "failed" and row.sha256 not in self.hostile]:
            told = f"{row.rung} reading of {self._name(row.sha256)}, {row.attempts} tries: {row.reason}"
            self._note("lost", 1, f"given up: {told}")
        files = ReadingFiles(self.home / "readings")
        for row in [row for row in rows if row.state == "done"]:
            if not await files.is_whole(
                row.id,
                pages=row.pages,
                chunks=row.chunks,
                figures=row.figures,
                has_vectors=row.rung == "full",
                has_sentences=bool((row.details or {}).get("sentences")),
            ):
                self._note("lost", 1, f"reading {row.id} is not whole")

    def _name(self, sha256: str) -> str:
        """Return a content's words: that of its document, and its own."""
        papers = [one for one in self.world.versions.values() if one.sha256 == sha256]
        return f"{papers[0].word} {papers[0].version}" if papers else sha256 or "nothing"

    def _note(self, kind: str, number: int, fault: str) -> None:
        if number:
            setattr(self.tally, kind, getattr(self.tally, kind) + number)
            self.faults.append(f"{kind} {number}: {fault}")
