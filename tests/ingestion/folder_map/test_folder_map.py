"""``folders.toml``: schema, mistakes by line, and live reload."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from harness.ingestion_home import Home
from harness.tables import for_each
from samples.paper import pdf

from ingestion.app import Ingestion
from ingestion.folder_map.folder_map import check_map, map_owners, read_map
from storage.folders.folders import Folders
from storage.sql.tables import BlobRow, FolderRow, ReadingRow

LEAVE = pdf("Leave\nEmployees get twenty five days of marzipan leave a year.")
TRAVEL = pdf("Travel\nTickets are booked by the zeppelin desk.")
LIBRARY = '[library.policies]\nchannels = ["a"]\n[[library.policies.folder]]\nlocation = "/policies"\n'
EXAMPLE = Path(__file__).parents[3] / "deploy" / "folders.example.toml"


def mistakes(home: Path, text: str) -> list[str]:
    """Return the mistakes in a map, as ``line: message``."""
    home.mkdir(exist_ok=True)
    path = home / "folders.toml"
    path.write_text(text)
    return [f"{one.line}: {one.sentence}" for one in check_map(path)]


def entry_with(passwords: str) -> str:
    """Return a folder entry with these passwords."""
    return f'[[folder]]\nlocation = "/srv/hr"\nchannel = "hr"\npasswords = {passwords}\n'


def test_the_shipped_example_is_valid() -> None:
    wishes = read_map(EXAMPLE.read_bytes(), Path("/var/lib/footnote"), Path("/var/lib/footnote/inbox"))
    assert len(wishes) > 4
    assert len({wish.location for wish in wishes}) < len(wishes)  # one of them is a library


def test_a_map_assigns_folders_to_channels(tmp_path: Path) -> None:
    """Covers every key; a library is one location for several channels."""
    text = f"""
[names]
sl_T012_C034 = "#hr-questions"

[[folder]]
location = "{tmp_path}/hr/"
channel = "sl_T012_C034"
every = 30
pause = true
ask_before_deleting_share = 0.2
passwords = ["env:HR_PDF_PASSWORD", "file:/run/secrets/hr"]

[library.policies]
channels = ["sl_T012_C034", "handbook"]
[[library.policies.folder]]
location = "docs"
"""
    hr, first, second = read_map(text.encode(), tmp_path / "home", tmp_path / "home" / "inbox")
    assert (hr.location, hr.channel, hr.name) == (f"{tmp_path}/hr", "sl_T012_C034", "#hr-questions")
    assert (hr.every, hr.is_paused, hr.ask_from_share) == (30, True, 0.2)
    assert hr.passwords == ("env:HR_PDF_PASSWORD", "file:/run/secrets/hr")
    assert first.location == second.location == f"{tmp_path}/home/docs"
    assert [(one.channel, one.name) for one in (first, second)] == [
        ("sl_T012_C034", "#hr-questions"),
        ("handbook", None),
    ]


def test_owners_are_listed_by_channel(tmp_path: Path) -> None:
    """A channel may have several, a library's folder has its own in each channel; none if invalid."""
    map_ = tmp_path / "folders.toml"
    map_.write_text(
        f'[[folder]]\nlocation = "{tmp_path}/a"\nchannel = "hr"\nowner = "slack:T1:U1"\n'
        f'[[folder]]\nlocation = "{tmp_path}/b"\nchannel = "hr"\nowner = "teams:t:u-2"\n'
        f'[library.all]\nchannels = ["hr", "it"]\n[[library.all.folder]]\nlocation = "{tmp_path}/c"\n'
        'owner = "slack:T1:U1"\n[direct_chats]\nlibrary = "all"\n'
    )
    assert map_owners(map_, tmp_path / "inbox") == {
        "hr": ("slack:T1:U1", "teams:t:u-2"),
        "it": ("slack:T1:U1",),
        "library/all": ("slack:T1:U1",),
    }
    map_.write_text(f'[[folder]]\nlocation = "{tmp_path}/a"\nchannel = "hr"\nowner = "Bob"\n')
    assert map_owners(map_, tmp_path / "inbox") == {}


def test_the_library_of_direct_chats_feeds_its_own_channel(tmp_path: Path) -> None:
    """Adds one entry, with or without channels, and none unless it is configured."""
    home, text = tmp_path / "home", LIBRARY.replace('channels = ["a"]\n', "")
    (own,) = read_map(f'{text}[direct_chats]\nlibrary = "policies"\n'.encode(), home, home / "inbox")
    assert (own.location, own.channel, own.library) == ("/policies", "library/policies", "policies")
    attached, own = read_map(
        f'{LIBRARY}[direct_chats]\nlibrary = "policies"\n'.encode(), home, home / "inbox"
    )
    assert (attached.channel, attached.library, own.channel) == ("a", None, "library/policies")
    assert [one.channel for one in read_map(LIBRARY.encode(), home, home / "inbox")] == ["a"]


@for_each(
    ("text", "line", "words"),
    [
        ('[[folder]\nlocation = "/srv/hr"\n', 1, "not TOML"),
        ('# a comment\n[[folder]]\nlocation = "/srv/hr"\n', 2, "channel is missing"),
        ('[[folder]]\nlocation = "/srv/hr"\nchanel = "hr"\nchannel = "hr"\n', 3, "chanel is not a known key"),
        ('[[folder]]\nlocation = "/srv/hr"\nchannel = "hr"\nevery = 0\n', 4, "every"),
        ('[[folder]]\nlocation = "/srv/hr"\nchannel = "hr"\nevery = "30"\n', 4, "every"),
        ('[[folder]]\nlocation = "gopher://x/y"\nchannel = "hr"\n', 2, "protocol"),
        ('[[folder]]\nlocation = "s3://me:secret@bucket/hr"\nchannel = "hr"\n', 2, "password"),
        (entry_with('["secret"]'), 4, "env:NAME"),
        (entry_with('[\n"env:HR",\n"secret",\n]'), 4, "file:/absolute/path"),
        (entry_with('["file:secret"]'), 4, "file:/absolute/path"),
        (entry_with('"secret"'), 4, "passwords"),
        (entry_with('["env:FOOTNOTE_SMB_PASSWORD"]'), 4, "Footnote's own"),
        (entry_with('["env:slack_bot_token"]'), 4, "Footnote's own"),
        (entry_with(str(["env:HR"] * 51)), 4, "passwords"),
        (
            '[library.a]\nchannels = ["a", "b"]\n[[library.a.folder]]\nlocation = "/s"\n'
            'passwords = ["secret"]\n',
            5,
            "env:NAME",
        ),
        ('[[folder]]\nlocation = "/srv/hr"\nchannel = "sl_nonsense"\n', 3, "malformed"),
        ('[[folder]]\nlocation = "/srv/hr"\nchannel = "#hr"\n', 3, "malformed"),
        ('[[folder]]\nlocation = "/srv/hr"\nchannel = "a/b"\n', 3, "malformed"),
        ('[[folder]]\nlocation = "/srv/hr"\nchannel = "hr"\nname = "#hr"\n', 3, "another name"),
        ('[names]\nhr = "#hr"\n', 2, "another name"),
        ('[[folder]]\nlocation = "/srv"\nchannel = "hr"\n' * 2, 5, "already"),
        (
            '[[folder]]\nlocation = "/srv/hr/old"\nchannel = "hr"\n'
            '[[folder]]\nlocation = "/srv/hr"\nchannel = "it"\n',
            2,
            "inside /srv/hr",
        ),
        (
            '[[folder]]\nlocation = "s3://b/hr"\nchannel = "hr"\n'
            '[[folder]]\nlocation = "s3://b/hr/x"\nchannel = "it"\n',
            5,
            "inside s3://b/hr",
        ),
        ('[[folder]]\nlocation = "."\nchannel = "hr"\n', 2, "Footnote's home"),
        ('[[folder]]\nlocation = "inbox/hr"\nchannel = "hr"\n', 2, "inbox"),
        ('[library.a]\nchannels = []\n[[library.a.folder]]\nlocation = "/srv"\n', 2, "[direct_chats]"),
        ('[library.a]\n[[library.a.folder]]\nlocation = "/srv"\n', 1, "no channels"),
        (f'{LIBRARY}[direct_chats]\nlibrary = "polices"\n', 6, "no library 'polices'"),
        (
            f'{LIBRARY}[direct_chats]\nlibary = "policies"\nlibrary = "policies"\n',
            6,
            "libary is not a known key",
        ),
        (f"{LIBRARY}[direct_chats]\n", 5, "library is missing"),
        ('[direct_chats]\nlibrary = "policies"\n', 2, "none yet"),
        (
            '[library."a/b"]\n[[library."a/b".folder]]\nlocation = "/s"\n[direct_chats]\nlibrary = "a/b"\n',
            1,
            "without a slash",
        ),
        ('[[folder]]\nlocation = "/s"\nchannel = "library/policies"\n', 3, "malformed"),
        (
            '[library.a]\nchannels = ["x"]\n[[library.a.folder]]\nlocation = "/s"\nx = 1\n',
            5,
            "not a known key",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    """Covers every kind of mistake; no password is quoted."""
    found = mistakes(tmp_path, text)
    assert len(found) == 1, found
    assert found[0].startswith(f"{line}: ")
    assert words in found[0]
    assert "secret" not in found[0]


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    text = '[[folder]]\nlocation = "gopher://x"\nchannel = "#x"\n[[folder]]\nlocation = "."\nchannel = "y"\n'
    assert [one.split(":")[0] for one in mistakes(tmp_path, text)] == ["2", "3", "5"]


def test_a_sibling_with_a_longer_name_is_not_nested(tmp_path: Path) -> None:
    """Shows that paths are compared component by component."""
    text = entry(Path("/srv/hr"), "a") + entry(Path("/srv/hr-old"), "b")
    assert mistakes(tmp_path, text) == []


def test_a_link_into_another_folder_is_detected(tmp_path: Path) -> None:
    """Shows that resolved paths are compared."""
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "sub")
    text = (
        f'[[folder]]\nlocation = "{tmp_path}/real"\nchannel = "a"\n'
        f'[[folder]]\nlocation = "{tmp_path}/link"\nchannel = "b"\n'
    )
    (found,) = mistakes(tmp_path / "home", text)
    assert found.startswith("5: ")
    assert "inside" in found


def test_an_unavailable_location_is_no_mistake(tmp_path: Path) -> None:
    """Shows that an unmounted share does not invalidate the map."""
    assert mistakes(tmp_path, '[[folder]]\nlocation = "/nowhere/at/all"\nchannel = "hr"\n') == []


def test_a_multiline_string_does_not_shift_line_numbers(tmp_path: Path) -> None:
    """Shows that text in it that looks like a table header is ignored."""
    text = '[names]\nsl_T012_C034 = """\n[[folder]]\n"""\n[[folder]]\nlocation = "/x"\nchannel = "#a"\n'
    assert mistakes(tmp_path, text)[0].startswith("7: ")


async def serve(home: Home, text: str, **settings: object) -> Ingestion:
    """Start an ingestion that follows a map of this text."""
    write(home, text)
    serving = home.ingestion(stop_at="quick", **settings)
    await serving.start(home.inbox, home.path / "folders.toml")
    return serving


def write(home: Home, text: str) -> None:
    """Write the map into the home."""
    home.path.mkdir(exist_ok=True)
    (home.path / "folders.toml").write_text(text)


def entry(location: Path, channel: str, more: str = "") -> str:
    """Return a folder entry of a map."""
    return f'[[folder]]\nlocation = "{location}"\nchannel = "{channel}"\n{more}\n'


async def test_a_folder_is_mapped_and_unmapped_without_a_restart(home: Home, tmp_path: Path) -> None:
    """Shows that unmapping deletes, and that mapping again restores without reading again."""
    place = tmp_path / "share"
    place.mkdir()
    (place / "leave.pdf").write_bytes(LEAVE)
    await serve(home, "# nothing yet\n")
    write(home, entry(place, "hr"))
    before = await home.until_found("hr", "marzipan", "leave.pdf")
    write(home, "# nothing any more\n")
    await home.until_files("hr", "marzipan", set())
    assert (await home.documents("hr"))["leave.pdf"].state == "deleted"
    write(home, entry(place, "hr"))
    after = await home.until_found("hr", "marzipan", "leave.pdf")
    assert (after.document_id, after.version_id) == (before.document_id, before.version_id)
    assert len(await home.rows(ReadingRow)) == 1


@pytest.mark.parametrize(
    "broken",
    [
        "[[folder]]\nlocatio",
        pytest.param("", marks=pytest.mark.long),
        pytest.param(None, marks=pytest.mark.long),
    ],
)
async def test_an_invalid_map_keeps_the_old_mapping(
    home: Home, tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: str | None
) -> None:
    """Covers a broken, an empty and a missing file, even across a restart."""
    caplog.set_level(logging.WARNING)
    place = tmp_path / "share"
    place.mkdir()
    (place / "leave.pdf").write_bytes(LEAVE)
    serving = await serve(home, entry(place, "hr"))
    await home.until_found("hr", "marzipan", "leave.pdf")
    path = home.path / "folders.toml"
    path.unlink() if broken is None else path.write_text(broken)

    async def is_said() -> bool:
        return any("the folder map has mistakes" in record.message for record in caplog.records)

    await home.until(is_said)
    assert str(tmp_path) not in caplog.text
    await serving.stop()
    again = home.ingestion(stop_at="quick")
    await again.start(home.inbox, path)
    (place / "travel.pdf").write_bytes(TRAVEL)
    await home.until_found("hr", "zeppelin", "travel.pdf")
    assert set(await home.find("hr", "marzipan")) == {"leave.pdf"}


async def test_a_paused_folder_is_not_scanned_and_stays_live(home: Home, tmp_path: Path) -> None:
    """Shows that pausing stops arrivals and deletions, and that resuming catches up."""
    place, witness = tmp_path / "share", tmp_path / "witness"
    for one in (place, witness):
        one.mkdir()
    (place / "leave.pdf").write_bytes(LEAVE)
    await serve(home, entry(place, "hr"))
    await home.until_found("hr", "marzipan", "leave.pdf")
    write(home, entry(place, "hr", "pause = true") + entry(witness, "it"))
    (witness / "leave.pdf").write_bytes(LEAVE)
    await home.until_found("it", "marzipan", "leave.pdf")  # the new map is in force now
    (place / "travel.pdf").write_bytes(TRAVEL)
    (witness / "travel.pdf").write_bytes(TRAVEL)
    await home.until_found("it", "zeppelin", "travel.pdf")
    assert set(await home.documents("hr")) == {"leave.pdf"}
    write(home, entry(place, "hr"))
    await home.until_found("hr", "zeppelin", "travel.pdf")


async def test_an_invalid_map_at_startup_ends_no_pause(home: Home, tmp_path: Path) -> None:
    """Shows that the last valid map stays in force across a restart."""
    place, witness = tmp_path / "share", tmp_path / "witness"
    for one in (place, witness):
        one.mkdir()
    serving = await serve(home, entry(place, "hr", "pause = true") + entry(witness, "it"))
    await serving.stop()
    write(home, entry(place, "hr") + "[[folder]]\nlocation = 5\n")
    for one in (place, witness):
        (one / "leave.pdf").write_bytes(LEAVE)
    await home.ingestion(stop_at="quick").start(home.inbox, home.path / "folders.toml")
    await home.until_found("it", "marzipan", "leave.pdf")
    assert await home.documents("hr") == {}
    write(home, entry(place, "hr"))
    await home.until_found("hr", "marzipan", "leave.pdf")


async def test_a_display_name_is_copied_to_the_channel(home: Home, tmp_path: Path) -> None:
    """Shows that the id still identifies it."""
    await serve(home, entry(tmp_path / "share", "sl_T012_C034", 'name = "#hr-questions"'))
    (channel,) = await home.channels.all()
    assert (channel.tenant, channel.name) == ("sl_T012_C034", "#hr-questions")
    (status,) = await Folders(home.database).status()
    assert (status.channel, status.channel_name, status.origin) == ("sl_T012_C034", "#hr-questions", "map")


async def test_a_library_is_read_once_for_all_its_channels(home: Home, tmp_path: Path) -> None:
    """A single blob and reading, a document per channel; channels are attached and detached later."""
    place = tmp_path / "policies"
    place.mkdir()
    (place / "leave.pdf").write_bytes(LEAVE)
    library = '[library.policies]\nchannels = {}\n[[library.policies.folder]]\nlocation = "{}"\n'
    await serve(home, library.format('["a", "b"]', place))
    first = {name: await home.until_found(name, "marzipan", "leave.pdf") for name in ("a", "b")}
    assert first["a"].document_id != first["b"].document_id
    assert first["a"].reading_id == first["b"].reading_id
    write(home, library.format('["b", "c"]', place))
    await home.until_found("c", "marzipan", "leave.pdf")
    await home.until_files("a", "marzipan", set())
    assert (await home.find("b", "marzipan"))["leave.pdf"].id == first["b"].id
    assert len(await home.rows(BlobRow)) == 1
    assert len(await home.rows(ReadingRow)) == 1
    (place / "leave.pdf").write_bytes(TRAVEL)
    for name in ("b", "c"):
        await home.until_found(name, "zeppelin", "leave.pdf")
    assert len(await home.rows(ReadingRow)) == 2


@pytest.mark.long
async def test_the_library_of_direct_chats_follows_the_map(home: Home, tmp_path: Path) -> None:
    """The library is set and cleared live, read once, and kept when the map has a mistake."""
    place = tmp_path / "policies"
    place.mkdir()
    (place / "leave.pdf").write_bytes(LEAVE)
    library = f'[library.policies]\nchannels = ["a"]\n[[library.policies.folder]]\nlocation = "{place}"\n'
    direct = '[direct_chats]\nlibrary = "policies"\ninstallations = ["T0HOME"]\n'
    await serve(home, library)
    await home.until_found("a", "marzipan", "leave.pdf")
    assert await home.channels.direct_library() is None
    write(home, library + direct)
    await home.until_found("library/policies", "marzipan", "leave.pdf")
    named = await home.channels.direct_library()
    assert named is not None
    assert named.installations == {"T0HOME"}
    channel = named.channel
    assert (channel.name, channel.is_library, channel.is_direct) == ("library/policies", True, False)
    assert len(await home.rows(ReadingRow)) == 1
    write(home, library + direct + "[[folder]]\nlocation = 5\n")
    (place / "travel.pdf").write_bytes(TRAVEL)
    await home.until_found("library/policies", "zeppelin", "travel.pdf")
    assert await home.channels.direct_library() == named
    write(home, library)
    await home.until_files("library/policies", "zeppelin", set())
    assert await home.channels.direct_library() is None
    assert set(await home.find("a", "marzipan")) == {"leave.pdf"}


@pytest.mark.long
async def test_two_ingestions_on_one_home_share_the_locations(home: Home, tmp_path: Path) -> None:
    """Shows that one of them scans a location, and that the other takes over when it stops."""
    place = tmp_path / "share"
    place.mkdir()
    first = await serve(home, entry(place, "hr"))
    second = home.ingestion(stop_at="quick")
    await second.start(home.inbox, home.path / "folders.toml")
    (place / "leave.pdf").write_bytes(LEAVE)
    await home.until_found("hr", "marzipan", "leave.pdf")
    assert len({row.lease_owner for row in await home.rows(FolderRow)}) == 1
    await first.stop()
    (place / "travel.pdf").write_bytes(TRAVEL)
    await home.until_found("hr", "zeppelin", "travel.pdf")
    assert len(await home.rows(BlobRow)) == 2
