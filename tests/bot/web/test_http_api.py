"""The API: answers, streams, errors as problem details, and channels that a token does not open."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any

import pytest
from aiohttp import FormData
from aiohttp.test_utils import TestClient
from fakes.web_house import House, Shelved, Visit, make_pdf
from harness.tables import for_each
from jsonschema import Draft202012Validator

from bot.core.models import LOCAL_ASKER, Answer, AnswerState
from bot.core.ports import FoundPassage
from bot.uploads.file_checks import MEGABYTE
from bot.web.api.problems import DETAILS
from storage.errors import IndexUnavailable
from storage.installations.api_tokens import ApiTokens
from storage.models import Channel, ChannelKey, Platform
from storage.sql.audit import AuditedAction, AuditLog

ASK = "/api/v1/ask"
DOCUMENTS = "/api/v1/documents"
JSON = "application/json"
PDF = make_pdf([["Water boils at 100 C"]])


@dataclass
class Office:
    """A channel with a cited document, another one with its own, and a token that opens the first only."""

    house: House
    client: TestClient
    channel: Channel
    other: Channel
    shelved: Shelved
    token: str
    citation: int
    foreign_document: Shelved
    foreign_citation: int

    async def call(self, method: str, path: str, token: str | None = None, **options: Any) -> Any:
        """Send a request with a token, by default the first channel's; return status, type and JSON."""
        headers = {"Authorization": f"Bearer {token or self.token}", **options.pop("headers", {})}
        response = await self.client.request(method, path, headers=headers, **options)
        is_json = response.content_type.endswith("json")
        return (
            response.status,
            response.content_type,
            await response.json(content_type=None) if is_json else None,
        )

    async def new_token(self, channel: Channel | None = None) -> str:
        """Create a token; None: for all channels."""
        _, token = await ApiTokens(self.house.database).create("program", channel, LOCAL_ASKER)
        return token


@pytest.fixture
async def office(house: House, client: TestClient) -> Office:
    """Fill two channels; a question in the first has a scripted answer."""
    places = []
    for name in ("alpha", "beta"):
        channel = await house.channel(name)
        page = make_pdf([["Water boils at 100 C", name]])
        shelved = await house.shelve(channel, f"{name}.pdf", page, "Water")
        record = await house.cite(channel, shelved, 1, "boils at 100 C")
        places.append((channel, shelved, record))
    (channel, shelved, record), (other, foreign, foreign_record) = places
    answer = house.answer("At 100 C. [1]", (channel, record, "Water", "alpha.pdf"))
    citations = tuple(replace(one, citation_id=record.id) for one in answer.citations)
    house.answering.answers["When?"] = replace(answer, citations=citations)
    _, token = await ApiTokens(house.database).create("program", channel, LOCAL_ASKER)
    return Office(house, client, channel, other, shelved, token, record.id, foreign, foreign_record.id)


def form(name: str = "new.pdf", data: bytes = PDF, field: str = "file") -> FormData:
    """Return a form with a file."""
    filled = FormData(quote_fields=False)
    filled.add_field(field, BytesIO(data), filename=name)
    return filled


async def test_an_answer_has_its_page_quote_and_signed_link(office: Office) -> None:
    """The link opens the viewer; the citation can be asked for again, with the picture of its page."""
    status, media, said = await office.call("POST", ASK, json={"question": " When? "})
    assert (status, media) == (200, "application/json")
    assert (said["state"], said["text"], said["channel"]) == ("grounded", "At 100 C. [1]", "alpha")
    (source,) = said["citations"]
    assert (source["id"], source["page"], source["quote"]) == (office.citation, 1, "boils at 100 C")
    viewer = await office.client.get(office.house.links.viewer_path(source["url"]))
    assert (viewer.status, 'class="mark"' in await viewer.text()) == (200, True)
    path = f"/api/v1/citations/{office.citation}"
    status, _, again = await office.call("GET", path)
    assert (status, again["document"], again["quote"]) == (
        200,
        str(office.shelved.document),
        "boils at 100 C",
    )
    assert len(again["boxes"]) == 1
    picture = await office.client.get(f"{path}/picture", headers={"Authorization": f"Bearer {office.token}"})
    assert (picture.status, (await picture.read())[:4]) == (200, b"\x89PNG")


async def test_a_stream_ends_with_the_whole_answer(office: Office) -> None:
    """Shows each beginning as an event, then the answer as JSON."""
    office.house.answering.beginnings = ("At 100 C. [1]",)
    headers = {"Authorization": f"Bearer {office.token}", "Accept": "text/event-stream"}
    response = await office.client.post(ASK, json={"question": "When?"}, headers=headers)
    events = [one.split("\n") for one in (await response.text()).strip().split("\n\n")]
    assert (response.status, response.content_type) == (200, "text/event-stream")
    assert events[0] == ["event: beginning", 'data: {"text":"At 100 C."}']
    assert events[1][0] == "event: answer"
    assert json.loads(events[1][1].removeprefix("data: "))["citations"][0]["page"] == 1


async def test_a_failed_stream_ends_with_a_problem(office: Office) -> None:
    """The status has been sent; the cause stays in the log."""
    office.house.answering.answers["Why?"] = RuntimeError("secret")
    headers = {"Authorization": f"Bearer {office.token}", "Accept": "text/event-stream"}
    response = await office.client.post(ASK, json={"question": "Why?"}, headers=headers)
    event, data = (await response.text()).strip().split("\n")
    assert (event, json.loads(data.removeprefix("data: "))["status"]) == ("event: problem", 500)
    assert "secret" not in data


async def test_passages_come_with_their_links(office: Office) -> None:
    """Shows the whole passage beside its cited sentence, at most as many as asked for."""
    (citation,) = office.house.answering.answers["When?"].citations  # type: ignore[union-attr]
    found = [FoundPassage(office.shelved.document, citation, "Water boils at 100 C", 0.75)] * 3
    office.house.answering.passages["water"] = found
    status, _, said = await office.call("POST", "/api/v1/search", json={"query": "water", "limit": 2})
    assert (status, len(said["passages"])) == (200, 2)
    one = said["passages"][0]
    assert (one["text"], one["score"], one["page"]) == ("Water boils at 100 C", 0.75, 1)
    assert one["url"] == citation.url


async def test_the_api_is_off_without_a_token(client: TestClient, house: House) -> None:
    """Shows 404 until a token exists, then 401 for whoever has none; a revoked one opens nothing."""
    wrong = {"Authorization": "Bearer footnote_wrong"}
    for path in (DOCUMENTS, "/api/v1/openapi.json"):
        assert (await client.get(path, headers=wrong)).status == 404
    tokens = ApiTokens(house.database)
    number, token = await tokens.create("program", None, LOCAL_ASKER)
    await house.channel("alpha")
    for headers in (wrong, {}, {"Authorization": token}, {"Authorization": "Bearer "}):
        refused = await client.get(DOCUMENTS, headers=headers)
        assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert (await client.get("/api/v1/openapi.json")).status == 200
    mine = {"Authorization": f"Bearer {token}"}
    assert (await client.get(DOCUMENTS, headers=mine)).status == 200
    assert await tokens.revoke(number, LOCAL_ASKER)
    assert (await client.get(DOCUMENTS, headers=mine)).status == 404


async def test_the_consoles_secret_and_cookies_open_no_api(office: Office) -> None:
    """The client has the console's cookie, which counts for nothing here."""
    assert (await office.client.get("/console/channels")).status == 200
    assert (await office.client.get(DOCUMENTS)).status == 401


@for_each(
    ("method", "path", "body"),
    [
        ("POST", ASK, {"question": "When?", "channel": "beta"}),
        ("POST", "/api/v1/search", {"query": "water", "channel": "beta"}),
        ("POST", "/api/v1/feedback", {"question": "0" * 32, "verdict": "good", "channel": "beta"}),
        ("GET", DOCUMENTS + "?channel=beta", None),
        ("POST", DOCUMENTS + "?channel=beta", "form"),
        ("DELETE", DOCUMENTS + "/{document}?channel=beta", None),
        ("DELETE", DOCUMENTS + "/{document}", None),
        ("GET", "/api/v1/citations/{citation}", None),
        ("GET", "/api/v1/citations/{citation}/picture", None),
    ],
)
async def test_other_channels_do_not_exist_for_a_token(
    office: Office, method: str, path: str, body: Any
) -> None:
    """Shows the same 404 as for what does not exist; a token for all channels finds it."""
    path = path.format(document=office.foreign_document.document, citation=office.foreign_citation)
    options = {"data": form()} if body == "form" else {"json": body} if body else {}
    status, media, said = await office.call(method, path, **options)
    assert (status, media, said["detail"]) == (404, "application/problem+json", DETAILS[404])
    if method == "GET":
        everything = await office.new_token()
        assert (await office.call(method, path, everything))[0] == 200


async def test_a_direct_chat_is_opened_by_no_token(office: Office) -> None:
    """Neither by name nor by a citation in it."""
    chats = office.house.channels
    chat = await chats.ensure(ChannelKey(Platform("slack"), "T1AA", "D1AA"), is_direct=True)
    shelved = await office.house.shelve(chat, "mine.pdf", PDF, "Mine")
    record = await office.house.cite(chat, shelved, 1, "boils")
    everything = await office.new_token()
    assert (await office.call("GET", f"{DOCUMENTS}?channel={chat.tenant}", everything))[0] == 404
    assert (await office.call("GET", f"/api/v1/citations/{record.id}", everything))[0] == 404


async def test_a_token_for_all_names_its_channel(office: Office) -> None:
    """The only channel need not be named, one of several must be."""
    everything = await office.new_token()
    status, _, said = await office.call("POST", ASK, everything, json={"question": "When?"})
    assert (status, said["detail"]) == (422, "Name a channel: the token opens several.")
    asked = {"question": "When?", "channel": "alpha"}
    assert (await office.call("POST", ASK, everything, json=asked))[0] == 200


@for_each(
    ("options", "status", "pointer"),
    [
        ({"data": b"{", "headers": {"Content-Type": JSON}}, 400, None),
        ({"data": b"question=x"}, 415, None),
        ({"json": {"question": " "}}, 422, "/question"),
        ({"json": {"question": "x" * 5000}}, 422, None),
        ({"json": {"question": "x", "sudo": True}}, 422, "/sudo"),
        ({"json": {"question": 7}}, 422, "/question"),
        ({"data": BytesIO(b"x" * (MEGABYTE + 1)), "headers": {"Content-Type": JSON}}, 413, None),
        ({"data": b"{}", "headers": {"Content-Type": "application/json; charset=no"}}, 400, None),
    ],
)
async def test_mistakes_are_problems_that_name_the_field(
    office: Office, options: dict[str, Any], status: int, pointer: str | None
) -> None:
    """Shows RFC 9457 members, and none of what was sent."""
    refused, media, said = await office.call("POST", ASK, **options)
    assert (refused, media) == (status, "application/problem+json")
    assert (said["type"], said["status"], bool(said["title"])) == ("about:blank", status, True)
    assert [one["pointer"] for one in said.get("errors", [])] == ([pointer] if pointer else [])
    assert "xxx" not in json.dumps(said)


async def test_unknown_paths_and_methods_are_problems(office: Office) -> None:
    """Shows 404 and 405 with the allowed methods."""
    assert (await office.call("GET", "/api/v1/nothing"))[:2] == (404, "application/problem+json")
    response = await office.client.get(ASK)
    assert (response.status, response.headers["Allow"]) == (405, "POST")
    assert response.content_type == "application/problem+json"


async def test_too_many_questions_are_refused(visit: Visit, house: House) -> None:
    """Shows 429 with the time to wait; another token of the channel is not affected."""
    client = await visit(person_questions=1)
    channel = await house.channel("alpha")
    tokens = [await ApiTokens(house.database).create("program", channel, LOCAL_ASKER) for _ in range(2)]
    statuses = []
    for _, token in (tokens[0], tokens[0], tokens[1]):
        headers = {"Authorization": f"Bearer {token}"}
        response = await client.post(ASK, json={"question": "When?"}, headers=headers)
        statuses.append((response.status, response.headers.get("Retry-After")))
    assert statuses == [(200, None), (429, "60"), (200, None)]


@for_each(
    ("error", "status"),
    [
        (IndexUnavailable("http://admin:cast-iron@weaviate:8080 does not answer"), 503),
        (RuntimeError("cast-iron"), 500),
        (Answer(AnswerState.FAILED, "The search doesn’t respond."), 503),
    ],
)
async def test_failures_reveal_nothing(office: Office, error: Any, status: int) -> None:
    """An answer that failed is a problem, too."""
    office.house.answering.answers["Why?"] = error
    refused, media, said = await office.call("POST", ASK, json={"question": "Why?"})
    assert (refused, media) == (status, "application/problem+json")
    assert "cast-iron" not in json.dumps(said)


async def test_a_thread_belongs_to_one_token(office: Office) -> None:
    """Shows that a follow-up knows the earlier question, unless another token uses the same name."""
    for token in (office.token, office.token, await office.new_token(office.channel)):
        body = {"question": "When?", "thread": "t"}
        assert (await office.call("POST", ASK, token, json=body))[0] == 200
    assert [len(one.history) for one in office.house.answering.asked] == [0, 1, 0]
    assert {one.asker for one in office.house.answering.asked} == {"api:token:1", "api:token:2"}


async def test_an_uploaded_file_can_be_deleted_again(office: Office) -> None:
    """Shows quotas, duplicates, unreadable and large files; only uploads can be deleted."""
    inbox = office.house.home / "inbox"
    inbox.mkdir(parents=True)
    other = make_pdf([["Ice melts at 0 C"]])
    status, _, said = await office.call("POST", DOCUMENTS, data=form("../ice.pdf", other))
    assert (status, said["file"]) == (202, "uploads/ice.pdf")
    stored = inbox / "alpha" / "uploads" / "ice.pdf"
    assert stored.read_bytes() == other
    for filled, expected in (
        (form("ice.pdf", other), 409),
        (form("page.pdf", b"<html>"), 422),
        (form(field="other"), 422),
        (form("notes.docx"), 422),
    ):
        refused = await office.call("POST", DOCUMENTS, data=filled)
        assert refused[:2] == (expected, "application/problem+json")
    assert (await office.call("POST", DOCUMENTS, json={}))[0] == 415
    assert (await office.call("DELETE", f"{DOCUMENTS}/{office.shelved.document}"))[0] == 403
    assert [one.action for one in await AuditLog(office.house.database).latest()] == [
        "create token",
        "upload",
    ]


async def test_a_large_file_is_a_problem(visit: Visit, house: House) -> None:
    """Shows 413 with a sentence, whatever size was declared, and leaves nothing behind."""
    client = await visit(max_file_mb=1)
    channel = await house.channel("alpha")
    (house.home / "inbox").mkdir(parents=True)
    _, token = await ApiTokens(house.database).create("program", channel, LOCAL_ASKER)
    large = form("large.pdf", PDF + bytes(MEGABYTE))
    response = await client.post(DOCUMENTS, data=large, headers={"Authorization": f"Bearer {token}"})
    said = await response.json(content_type=None)
    assert (response.status, said["detail"]) == (413, "I didn’t add large.pdf: it’s larger than 1 MB.")
    assert [one.name for one in (house.home / "inbox" / "alpha" / "uploads").iterdir()] == []


async def test_feedback_needs_a_stored_answer(office: Office) -> None:
    """Shows 404 for an unknown id; the journey shows that feedback reaches the record."""
    body = {"question": "0" * 32, "verdict": "good"}
    assert (await office.call("POST", "/api/v1/feedback", json=body))[0] == 404


async def test_a_revoked_citation_does_not_exist(office: Office) -> None:
    """Shows that the API makes no new link for it."""
    await office.house.citations.revoke([office.citation], AuditedAction(LOCAL_ASKER, "revoke links", ""))
    assert (await office.call("GET", f"/api/v1/citations/{office.citation}"))[0] == 404


async def test_the_document_of_the_api_is_valid(office: Office) -> None:
    """Shows that every reference leads somewhere and every schema is one of JSON Schema 2020-12."""
    said = await (await office.client.get("/api/v1/openapi.json")).json()
    assert said["openapi"].startswith("3.1.")
    defined = said["components"]["schemas"]
    for schema in defined.values():
        Draft202012Validator.check_schema(schema)
    text = json.dumps(said)
    assert {one.split('"')[0] for one in text.split("#/components/schemas/")[1:]} <= defined.keys()
    operations = [one for path in said["paths"].values() for one in path.values()]
    assert len({one["operationId"] for one in operations}) == len(operations) == 8
    assert set(said["paths"]) >= {"/documents/{document}", "/citations/{citation}/picture"}
