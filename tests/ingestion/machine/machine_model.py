"""Reference model: an independent, simple check of deletions, live documents and identities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from machine_folders import BY_SHA256, Paper, Place, Wish
from machine_life import Life
from machine_witness import Answer, Folder

# Shorter than the time within which a deleted document can be restored.
GRACE_HOURS = 20.0
# Share of a channel's documents; more may not vanish from a folder without approval.
SHARE = 0.5

# (name of a place, file in it).
Key = tuple[str, str]


@dataclass
class Taken:
    """A settled file that was deleted."""

    paper: Paper
    # Folder -> document.
    documents: dict[int, UUID]
    # Remaining time in which it can be restored, whatever the clocks do.
    hours: float = GRACE_HOURS


class Model:
    """State of the desired folders and of every answer that was seen."""

    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        # Live documents at the last observation.
        self.answers: dict[UUID, Answer] = {}
        # Last answers of documents that were rightly deleted.
        self.ended: dict[UUID, Answer] = {}
        # Publications whose loss in the index is not repaired yet.
        self.damaged: set[UUID] = set()
        # Files only renamed since the last settled state: folder -> document.
        self.identities: dict[Key, dict[int, UUID]] = {}
        # Those of them that were deleted and may be restored as the same documents.
        self._away: dict[Key, Taken] = {}
        # Those of them that exchanged names: a file whose partner is deleted looks like its replacement.
        self._swapped: set[Key] = set()
        self._ever: set[tuple[str, str]] = set()

    def note_wish(self) -> None:
        """Record which contents were ever wanted in which channel."""
        for name, place in self._wish.places.items():
            self._ever |= {
                (channel, paper.sha256)
                for paper in place.papers.values()
                for channel in self._wish.feeds(name)
            }

    def observe(self, now: Mapping[UUID, Answer], may_end: Iterable[UUID] = ()) -> None:
        """Compare the live documents with the previous ones; those in ``may_end`` were rightly deleted."""
        may_end = set(may_end)
        for document, old in list(self.answers.items()):
            if document in may_end:
                assert document not in now, f"a deleted document answers: {old}"
                self.ended[document] = self.answers.pop(document)
            elif document not in now:
                assert old.publication in self.damaged, f"it does not answer any more: {old}"
            else:
                assert now[document].version_id >= old.version_id, f"an older version answers again: {old}"
        for document, new in now.items():
            self._admit(document, new)
        self.answers |= now

    def _admit(self, document: UUID, new: Answer) -> None:
        assert new.is_whole or new.publication in self.damaged, f"half a document answers: {new}"
        assert (new.channel, new.sha256) in self._ever, f"it was never in this channel: {new}"
        if document in self.ended:
            assert new.sha256 in self._wanted_in(new.channel), f"a deleted document answers again: {new}"
            del self.ended[document]

    def _wanted_in(self, channel: str) -> set[str]:
        return {
            paper.sha256
            for name, place in self._wish.places.items()
            for paper in place.papers.values()
            if channel in self._wish.feeds(name)
        }

    def touch(self, place: str, file: str, paper: Paper | None = None) -> None:
        """Drop a file's identity after more than a rename; copies of its bytes may now be mistaken for it."""
        self.identities.pop((place, file), None)
        self._away.pop((place, file), None)
        for key in [key for key in self._swapped if key[0] == place]:
            self.identities.pop(key, None)
        if paper is not None:
            copies = [key for key in self.identities if self._wish.places[key[0]].papers.get(key[1]) == paper]
            for key in copies:
                del self.identities[key]
            self._away = {key: one for key, one in self._away.items() if one.paper != paper}

    def take(self, place: str, file: str, paper: Paper) -> None:
        """Record the deletion of a file."""
        is_plain, documents = (place, file) not in self._swapped, self.identities.get((place, file))
        self.touch(place, file)
        if is_plain and documents:
            self._away[place, file] = Taken(paper, documents)

    def put_back(self, was: Key, new: str, paper: Paper, *, known: Iterable[str], holders: set[UUID]) -> None:
        """Record that a paper is back under its old name, or under a name that no known document has.

        Args:
            was, new, paper: previous place and file, current file name, content.
            known: names of all documents.
            holders: all documents that ever had these bytes, and might be mistaken for it.
        """
        (place, file), taken = was, self._away.get(was)
        self.touch(place, new, paper)
        if taken and taken.paper == paper and holders <= {*taken.documents.values()}:
            if new == file or new not in known:
                self.identities[place, new] = taken.documents

    def let_pass(self, hours: float) -> None:
        """Advance the time."""
        for one in self._away.values():
            one.hours -= hours
        self._away = {key: one for key, one in self._away.items() if one.hours > 0}

    def rename(self, place: str, file: str, new: str, known: Iterable[str]) -> None:
        """Record that a file has a new name, which no known document had."""
        self._away.pop((place, new), None)
        documents = self.identities.pop((place, file), None)
        if self.identities.pop((place, new), None) is None and documents and new not in known:
            self.identities[place, new] = documents
        if (place, file) in self._swapped:
            self._swapped.add((place, new))

    def swap(self, place: str, one: str, other: str) -> None:
        """Record that two files exchanged names."""
        first, second = self.identities.pop((place, one), None), self.identities.pop((place, other), None)
        if first and second:
            self.identities |= {(place, one): second, (place, other): first}
        self._swapped |= {(place, one), (place, other)}

    def forget_identities(self, place: str) -> None:
        """Drop all identities of a place: its documents may be deleted and added as others."""
        self.identities = {key: value for key, value in self.identities.items() if key[0] != place}
        self._away = {key: value for key, value in self._away.items() if key[0] != place}

    def recognise(self, folders: Mapping[int, Folder]) -> list[str]:
        """Return renamed files whose document changed; then take the current identities as the reference."""
        faults = [
            f"{file} in {place} is another document than before it was renamed"
            for (place, file), documents in self.identities.items()
            for folder, document in documents.items()
            if folders[folder].documents.get(file) != document
        ]
        self.identities.clear()
        self._swapped.clear()
        for folder in folders.values():
            name = self._wish.name_of(folder.location)
            if folder.watched and self._wish.places[name].is_healthy:
                for file in self._once(name) & folder.documents.keys():
                    self.identities.setdefault((name, file), {})[folder.id] = folder.documents[file]
        return faults

    def _once(self, name: str) -> set[str]:
        """Return the files of a place whose bytes exist nowhere else."""
        everything = [paper for place in self._wish.places.values() for paper in place.papers.values()]
        place = self._wish.places[name]
        return {file for file, paper in place.visible.items() if paper.word and everything.count(paper) == 1}

    def judge(self, life: Life, before: Mapping[int, Folder], after: Mapping[int, Folder]) -> set[UUID]:
        """Return the documents that a run deleted, after checking that it was allowed to."""
        still = {document for folder in after.values() for document in folder.documents.values()}
        deleted: set[UUID] = set()
        for folder in before.values():
            gone = set(folder.documents.values()) - still
            if gone and after[folder.id].watched:
                self._require_right(life, folder, gone, after)
            deleted |= gone
        self._note_missed(life, before, after)
        return deleted

    def _require_right(
        self, life: Life, folder: Folder, gone: set[UUID], after: Mapping[int, Folder]
    ) -> None:
        place = self._wish.place_at(folder.location)
        files = {document: file for file, document in folder.documents.items()}
        if place.outage == "missing" and files.keys() <= folder.approved:
            return  # an admin approved the deletion of all of it
        assert place.is_healthy, "something was deleted while its folder was away"
        for document in gone:
            assert files[document] not in place.visible, "a file that is there was deleted"
            assert files[document] in life.missed.get(folder.id, ()), "a file was deleted at its first miss"
        assert not (gone - folder.approved) & folder.asked, "what was asked about was deleted without a word"
        in_channel = [one for one in after.values() if one.channel_id == folder.channel_id]
        settled = folder.approved | folder.asked
        if not (gone & after[folder.id].answered) - settled:
            return  # none of the deleted documents was ever live
        known = {**after[folder.id].documents, **{files[one]: one for one in gone}}
        answered = frozenset().union(*(one.answered for one in in_channel))
        present = {document for one in in_channel for document in one.documents.values()} | gone
        missing = ((self._missing(life, folder, place, known) | gone) & answered) - settled
        count = len((present & answered) - folder.asked)
        assert len(missing) <= SHARE * count, f"{len(missing)} of {count} documents were deleted unasked"
        rest = (set(known.values()) & answered) - settled
        assert len(missing) < len(rest), "a whole folder was deleted unasked"

    def _missing(self, life: Life, folder: Folder, place: Place, known: Mapping[str, UUID]) -> set[UUID]:
        """Return documents missed by two complete scans and not possibly renamed to an arriving file."""
        arriving = {
            len(paper.data) for file, paper in place.visible.items() if not self._is_known(known, file, paper)
        }
        return {
            document
            for file, document in known.items()
            if file not in place.visible
            and file in life.missed.get(folder.id, ())
            and self._size(document) not in arriving
        }

    def _is_known(self, known: Mapping[str, UUID], file: str, paper: Paper) -> bool:
        answer = self.answers.get(known[file]) if file in known else None
        return answer is not None and answer.sha256 == paper.sha256

    def _size(self, document: UUID) -> int:
        answer = self.answers.get(document)
        return len(BY_SHA256[answer.sha256].data) if answer else -1

    def _note_missed(self, life: Life, before: Mapping[int, Folder], after: Mapping[int, Folder]) -> None:
        for folder in after.values():
            place = self._wish.place_at(folder.location)
            if place.is_healthy:
                known = folder.documents.keys() | (before[folder.id].documents if folder.id in before else {})
                life.missed[folder.id] = {file for file in known if file not in place.visible}

    def expect(self, after: Mapping[int, Folder]) -> list[str]:
        """Return the differences between the settled folders and the live documents."""
        faults = self._unwatched([folder.location for folder in after.values() if folder.watched])
        for folder in after.values():
            place = self._wish.place_at(folder.location)
            if not folder.watched:
                faults += [f"{file} is mapped no longer and still there" for file in folder.documents]
            if not folder.watched or not place.is_healthy:
                continue
            for file, paper in place.visible.items():
                faults += self._differences(folder, file, paper)
            waiting = {file for file, document in folder.documents.items() if document in folder.asked}
            faults += [
                f"{file} is gone and neither deleted nor asked about"
                for file in folder.documents.keys() - place.visible.keys() - waiting
            ]
        return faults

    def _unwatched(self, watched: Sequence[str]) -> list[str]:
        """Return places whose number of channels is wrong."""
        return [
            f"{name} feeds {watched.count(str(place.root))} channels, and not {self._wish.feeds(name)}"
            for name, place in self._wish.places.items()
            if place.visible and watched.count(str(place.root)) != len(self._wish.feeds(name))
        ]

    def _differences(self, folder: Folder, file: str, paper: Paper) -> list[str]:
        document = folder.documents.get(file)
        if document is None:
            return [f"{file} is lost"]
        if paper.word is None:
            return []
        answer = self.answers.get(document)
        if answer is None or answer.sha256 != paper.sha256 or answer.file != file:
            return [f"{file} should answer with {paper.word}: {answer}"]
        return []
