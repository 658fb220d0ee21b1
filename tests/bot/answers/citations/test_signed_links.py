"""Signed link tokens: our own are valid until they expire, anything else is forged."""

import base64
import json
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.answers.citations.signed_links import KeyRing, LinkClaims, Links, Purpose
from bot.core.errors import LinkEnded, LinkForged
from storage.models import Channel, ChannelKey, CitationRecord, Platform

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEEK = timedelta(days=7)
KEY = ChannelKey(Platform.LOCAL, "", "alpha")
CHANNEL = Channel(3, KEY.tenant, KEY.platform, "alpha", epoch=2)
CITATION = CitationRecord(11, 3, 5, 12, "backups run daily at 2:00 AM", (), NOW)

MakeLinks = Callable[..., Links]


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> KeyRing:
    """Return a key ring shared by the tests of this module."""
    return KeyRing(tmp_path_factory.mktemp("home") / "link_keys.json")


@pytest.fixture(scope="module")
def links(ring: KeyRing) -> Links:
    """Return links with a fixed clock."""
    return Links(ring, "https://docs.example.org/foot/", WEEK, lambda: NOW)


@pytest.fixture(scope="module")
def token(links: Links) -> str:
    """Return the token of a link."""
    return links.page_url(CHANNEL, CITATION).rpartition("/")[2]


def test_a_token_contains_the_signed_claims(links: Links, token: str) -> None:
    """Reading a token returns the signed claims, which expire after a week."""
    expires = int((NOW + WEEK).timestamp())
    assert links.read(token) == LinkClaims(3, 5, 12, 11, expires, epoch=2, signed=int(NOW.timestamp()))


def test_a_link_is_the_public_url_and_an_unpadded_token(links: Links, token: str) -> None:
    """The token is part of the path and uses URL-safe characters only."""
    assert links.page_url(CHANNEL, CITATION) == f"https://docs.example.org/foot/v/{token}"
    assert len(token) == 112
    assert token.replace("-", "").replace("_", "").isalnum()


def test_a_button_may_open_the_pdf_itself(ring: KeyRing, token: str) -> None:
    """With this setting a button opens the PDF at the cited page; its viewer path is still known."""
    links = Links(ring, "https://docs.example.org/foot", WEEK, lambda: NOW, "pdf")
    url = links.page_url(CHANNEL, CITATION)
    assert url == f"https://docs.example.org/foot/v/{token}/file.pdf#page=12"
    assert links.viewer_path(url) == f"/v/{token}"


def test_an_image_link_is_not_a_page_link(ring: KeyRing, links: Links, token: str) -> None:
    """A token signed for one purpose is forged for another, and cannot be used to browse quotes."""
    url = links.figure_url(CHANNEL, CITATION)
    picture = url.rpartition("/")[2]
    assert url == f"https://docs.example.org/foot/f/{picture}"
    assert links.figure_path(url) == f"/f/{picture}"
    assert links.read(picture, Purpose.FIGURE) == links.read(token)
    with pytest.raises(LinkForged):
        links.read(picture)
    with pytest.raises(LinkForged):
        links.read(token, Purpose.FIGURE)
    with pytest.raises(LinkForged):
        links.token_for_citation(picture, CITATION)
    late = Links(ring, "https://docs.example.org/foot/", WEEK, lambda: NOW + WEEK)
    with pytest.raises(LinkEnded):
        late.read(picture, Purpose.FIGURE)


def test_a_token_contains_no_text_of_the_document(token: str) -> None:
    """The quote stays in SQL: none of its words is in the token."""
    assert b"backups" not in base64.urlsafe_b64decode(token)


@given(bit=st.integers(0, 84 * 8 - 1))
def test_a_token_with_any_bit_flipped_is_forged(links: Links, token: str, bit: int) -> None:
    """The signature covers every bit, including itself."""
    data = bytearray(base64.urlsafe_b64decode(token))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(LinkForged):
        links.read(base64.urlsafe_b64encode(data).decode())


@given(place=st.integers(0, 111), character=st.characters())
def test_a_token_with_any_character_changed_is_forged(
    links: Links, token: str, place: int, character: str
) -> None:
    """A token has one spelling: no other one is accepted."""
    changed = token[:place] + character + token[place + 1 :]
    if changed != token:
        with pytest.raises(LinkForged):
            links.read(changed)


@given(length=st.integers(0, 111), padding=st.sampled_from(["", "=", "==", "A", "\n", "%00", "\u212a"]))
def test_a_token_cut_short_or_padded_is_forged(links: Links, token: str, length: int, padding: str) -> None:
    """Neither shorter nor longer strings are accepted."""
    for changed in (token[:length] + padding, token[length + 1 :] + padding, token + (padding or "=")):
        with pytest.raises(LinkForged):
            links.read(changed)


@given(
    garbage=st.text()
    | st.binary(min_size=84, max_size=84).map(lambda b: base64.urlsafe_b64encode(b).decode())
)
def test_garbage_of_any_kind_is_forged(links: Links, garbage: str) -> None:
    """Any text, and any bytes of a token's length, raise the same error."""
    with pytest.raises(LinkForged):
        links.read(garbage)


@given(cut=st.integers(1, 83))
def test_halves_of_two_good_tokens_make_a_forged_one(links: Links, token: str, cut: int) -> None:
    """Parts of two links cannot be combined."""
    other = links.page_url(CHANNEL, CitationRecord(99, 3, 6, 40, "", (), NOW)).rpartition("/")[2]
    first, second = base64.urlsafe_b64decode(token), base64.urlsafe_b64decode(other)
    swapped = first[:cut] + second[cut:]
    if swapped not in (first, second):
        with pytest.raises(LinkForged):
            links.read(base64.urlsafe_b64encode(swapped).decode())


def test_the_standard_alphabet_is_no_second_spelling(ring: KeyRing) -> None:
    """A token re-encoded with + and / instead of - and _ is forged."""
    links = Links(ring, "http://127.0.0.1", WEEK, lambda: NOW)
    tokens = (
        links.page_url(CHANNEL, CitationRecord(number, 3, 5, 1, "", (), NOW)).rpartition("/")[2]
        for number in range(99)
    )
    token = next(token for token in tokens if "-" in token or "_" in token)
    with pytest.raises(LinkForged):
        links.read(token.replace("-", "+").replace("_", "/"))


def test_a_link_derived_from_another_expires_with_it(tmp_path: Path) -> None:
    """Shows that opening other quotes extends neither the expiry nor the life of the key."""
    ring, now = KeyRing(tmp_path / "link_keys.json"), [NOW]
    links = Links(ring, "https://docs.example.org", WEEK, lambda: now[0])
    first = links.page_url(CHANNEL, CITATION).rpartition("/")[2]
    ring.rotate()
    now[0] += timedelta(days=6)
    beside = links.token_for_citation(first, CitationRecord(12, 3, 6, 7, "", (), NOW))
    assert links.read(beside) == LinkClaims(
        3, 6, 7, 12, links.read(first).expires, epoch=2, signed=links.read(first).signed
    )
    ring.rotate()
    for token in (first, beside):
        with pytest.raises(LinkForged):
            links.read(token)
    with pytest.raises(LinkForged):
        links.token_for_citation(first, CITATION)


def test_another_home_cannot_read_the_link(token: str, tmp_path: Path) -> None:
    """Keys are made per home: a link of one is forged in another."""
    other = Links(KeyRing(tmp_path / "link_keys.json"), "https://docs.example.org", WEEK, lambda: NOW)
    with pytest.raises(LinkForged):
        other.read(token)


def test_a_link_expires(ring: KeyRing, token: str) -> None:
    """Valid until the last second, expired from then on."""
    moments = iter([NOW + WEEK - timedelta(seconds=1), NOW + WEEK])
    later = Links(ring, "https://docs.example.org", WEEK, lambda: next(moments))
    assert later.read(token).page == 12
    with pytest.raises(LinkEnded):
        later.read(token)


def test_an_expired_link_with_a_bad_signature_is_forged(ring: KeyRing, token: str) -> None:
    """A forged token does not reveal if it would have expired."""
    later = Links(ring, "https://docs.example.org", WEEK, lambda: NOW + 2 * WEEK)
    with pytest.raises(LinkForged):
        later.read(token[:-1] + ("A" if token[-1] != "A" else "B"))


@pytest.mark.parametrize(
    "keys", [[], [{"id": 1, "secret": ""}], [{"id": 1, "secret": "c2hvcnQ="}], [{"id": 1}], {}], ids=str
)
def test_an_empty_or_weak_key_ring_is_refused(tmp_path: Path, keys: object) -> None:
    """With no key, an empty or a short one, nothing is signed or read."""
    path = tmp_path / "link_keys.json"
    path.write_text(json.dumps({"keys": keys}))
    links = Links(KeyRing(path), "https://docs.example.org", WEEK, lambda: NOW)
    with pytest.raises((ValueError, KeyError)):
        links.page_url(CHANNEL, CITATION)
    with pytest.raises((ValueError, KeyError)):
        links.read("A" * 112)


def test_links_survive_one_rotation_and_end_with_the_second(tmp_path: Path) -> None:
    """Two keys are active: the newest signs, the previous one still verifies."""
    path = tmp_path / "link_keys.json"
    links = Links(KeyRing(path), "https://docs.example.org", WEEK, lambda: NOW)
    first = links.page_url(CHANNEL, CITATION).rpartition("/")[2]
    KeyRing(path).rotate()
    second = links.page_url(CHANNEL, CITATION).rpartition("/")[2]
    assert first != second
    assert links.read(first) == links.read(second)
    KeyRing(path).rotate()
    assert links.read(second).page == 12
    with pytest.raises(LinkForged):
        links.read(first)


def test_renewals_end_thirty_days_after_the_first_signing(ring: KeyRing, token: str) -> None:
    """Thirty days limit all renewals, through whichever quote; an expired link stays expired."""
    now = NOW
    links = Links(ring, "https://docs.example.org", WEEK, lambda: now)
    renewed, other = token, CitationRecord(12, 3, 6, 7, "kept a year", (), NOW)
    assert links.renew(token) == token
    for day in range(1, 30):
        now = NOW + timedelta(days=day)
        renewed = links.token_for_citation(links.renew(renewed), other)
        assert links.read(renewed).expires == int(min(now + WEEK, NOW + timedelta(days=30)).timestamp())
        assert links.read(renewed).signed == int(NOW.timestamp())
    now = NOW + timedelta(days=30)
    for ended in (token, renewed):
        with pytest.raises(LinkEnded):
            links.renew(ended)
    with pytest.raises(LinkForged):
        links.renew(links.figure_url(CHANNEL, CITATION).rpartition("/")[2])


def test_a_renewed_link_ends_with_the_key_that_signed_it(tmp_path: Path) -> None:
    """A stolen link renewed after one rotation is invalid after two, like any other."""
    ring, now = KeyRing(tmp_path / "link_keys.json"), NOW
    links = Links(ring, "https://docs.example.org", WEEK, lambda: now)
    token = links.page_url(CHANNEL, CITATION).rpartition("/")[2]
    ring.rotate()
    now += timedelta(days=1)
    renewed = links.renew(token)
    assert renewed != token
    ring.rotate()
    with pytest.raises(LinkForged):
        links.read(renewed)


def test_the_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    """The file has mode 0600 and one 256-bit key at first; no temporary file is left."""
    path = tmp_path / "home" / "link_keys.json"
    (key,) = KeyRing(path).keys()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(key.secret) == 32
    assert [entry.name for entry in path.parent.iterdir()] == ["link_keys.json"]
    assert json.loads(path.read_bytes())["keys"][0]["id"] == key.id


def test_processes_that_start_together_share_one_ring(tmp_path: Path) -> None:
    """The first process to create the file wins; the others read it."""
    rings = [KeyRing(tmp_path / "link_keys.json") for _ in range(8)]
    together = Barrier(len(rings))
    found: list[object] = []

    def look(ring: KeyRing) -> None:
        together.wait()
        found.append(ring.keys())

    threads = [Thread(target=look, args=(ring,)) for ring in rings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
