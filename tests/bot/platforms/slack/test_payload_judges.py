"""Each of the three payload validators rejects a valid payload in which one thing was broken."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from engines.support.slack_judges import RESPONSE_URL, faults_of, model_faults, rule_faults, schema_faults
from harness.tables import for_each

from bot.chat.conversation.feedback import REASONS, FeedbackReply
from bot.core.models import Answer, AnswerFigure, AnswerState, Citation, Language
from bot.core.ports import ChannelOverview
from bot.platforms.slack.blocks import render, render_sentences
from bot.platforms.slack.feedback_buttons import FeedbackClick, answer_row, reply_blocks
from bot.platforms.slack.surfaces.agent_view import prompts
from bot.platforms.slack.surfaces.app_home import home_view
from storage.models import Box, ChannelKey, Platform

pytestmark = pytest.mark.engine("slack")

KEY = ChannelKey(Platform("slack"), "T1", "C1")
Payload = dict[str, Any]
Break = Callable[[Payload], object]


def message() -> Payload:
    """Return an answer with text, an image, five buttons, a menu and feedback."""
    citations = tuple(
        Citation(n, "Backups", f"{n}.pdf", n, "quote", (), f"https://footnote.example/v/{n}")
        for n in range(1, 8)
    )
    figure = AnswerFigure("1.pdf", 1, "Chart", Box(0, 0, 1, 1), "https://footnote.example/v/f", "f", 1)
    answer = Answer(AnswerState.GROUNDED, "Daily [1].", citations, figures=(figure,), standalone="When?")
    rendered = render(answer, 5, {0: "F1"}, row=answer_row(answer, KEY.tenant, "T1:C1:17.1"))
    blocks = list(rendered.blocks)
    metadata = {"event_type": "footnote_answer", "event_payload": {"message_key": "T1:C1:17.1"}}
    return {
        "channel": "C1",
        "text": rendered.text,
        "blocks": blocks,
        "metadata": metadata,
        "thread_ts": "17.1",
    }


def reply() -> Payload:
    """Return the reply to a thumbs-down: a menu of pages and a row of reasons."""
    click = FeedbackClick(
        KEY, "U1", {"channel": "C1", "user": "U1"}, "T1:C1:17.1", Language.ENGLISH, "bad", None
    )
    offered = FeedbackReply("Why?", [(one, one.value) for one in REASONS], ["p. 1"], "The right page is")
    return {"text": "Why?", "blocks": reply_blocks(offered, click), "response_type": "ephemeral"}


def home() -> Payload:
    """Return an App Home with one channel."""
    overview = ChannelOverview(KEY.tenant, "#it", "• SOP", ("When do backups run?",))
    return {"user_id": "U1", "view": home_view([overview], ["Why?"]) | {"private_metadata": "D1"}}


GOOD: dict[str, Payload] = {
    "chat.postMessage": message(),
    RESPONSE_URL: reply(),
    "views.publish": home(),
    "assistant.threads.setSuggestedPrompts": {"channel_id": "D1", "prompts": prompts(["When?"])},
    "chat.appendStream": {
        "channel": "C1",
        "ts": "1.1",
        "chunks": [{"type": "blocks", "blocks": [render_sentences("Daily.")]}],
    },
    "chat.unfurl": {
        "channel": "C1",
        "ts": "1.1",
        "unfurls": {"https://footnote.example/v/1": {"blocks": [render_sentences("Daily.")]}},
    },
    "conversations.history": {"channel": "C1", "limit": "20", "inclusive": "1"},
    "files.getUploadURLExternal": {"filename": "figure.png", "length": 3, "alt_txt": "A chart"},
}


def block(payload: Payload, kind: str) -> Payload:
    """Return the first block of a type."""
    blocks = (payload.get("view") or payload)["blocks"]
    return next(one for one in blocks if one["type"] == kind)  # type: ignore[no-any-return]


def button(payload: Payload) -> Payload:
    """Return the button of the first source."""
    return next(one for one in block(payload, "actions")["elements"] if "url" in one)  # type: ignore[no-any-return]


def menu(payload: Payload) -> list[Payload]:
    """Return the sources in the overflow menu."""
    menus = [one["accessory"] for one in payload["blocks"] if "accessory" in one]
    return menus[0]["options"]  # type: ignore[no-any-return]


POST, HISTORY, UPLOAD = "chat.postMessage", "conversations.history", "files.getUploadURLExternal"
STREAM, PROMPTS, HOME = "chat.appendStream", "assistant.threads.setSuggestedPrompts", "views.publish"
SCHEMA, MODELS, RULES = "schema", "models", "rules"
BROKEN: dict[str, tuple[str, str, Break]] = {
    "an argument that the method has not": (POST, SCHEMA, lambda one: one.update(color="red")),
    "no channel": (POST, SCHEMA, lambda one: one.pop("channel")),
    "a block of no known type": (POST, SCHEMA, lambda one: block(one, "section").update(type="sektion")),
    "a key that a block has not": (POST, SCHEMA, lambda one: block(one, "section").update(colour="red")),
    "a button without a text": (POST, SCHEMA, lambda one: button(one).pop("text")),
    "a button with marked-up text": (POST, SCHEMA, lambda one: button(one)["text"].update(type="mrkdwn")),
    "a style that no button has": (POST, SCHEMA, lambda one: button(one).update(style="gigantic")),
    "a picture without words": (POST, SCHEMA, lambda one: block(one, "image").pop("alt_text")),
    "a number for a text": (POST, SCHEMA, lambda one: block(one, "section")["text"].update(text=7)),
    "an event of metadata that is a text": (
        POST,
        SCHEMA,
        lambda one: one["metadata"].update(event_payload="x"),
    ),
    "a limit that is no number": (HISTORY, SCHEMA, lambda one: one.update(limit="many")),
    "a prompt without a message": (PROMPTS, SCHEMA, lambda one: one["prompts"][0].pop("message")),
    "a chunk of no known type": (STREAM, SCHEMA, lambda one: one["chunks"][0].update(type="blok")),
    "a view of no known type": (HOME, SCHEMA, lambda one: one["view"].update(type="house")),
    "a view without blocks": (HOME, SCHEMA, lambda one: one["view"].pop("blocks")),
    "a reply that goes nowhere": (RESPONSE_URL, SCHEMA, lambda one: one.update(response_url="x")),
    "a section of 3001 characters": (
        POST,
        MODELS,
        lambda one: block(one, "section")["text"].update(text="x" * 3001),
    ),
    "a section of nothing": (POST, MODELS, lambda one: block(one, "section").pop("text")),
    "a label of 76 characters": (POST, MODELS, lambda one: button(one)["text"].update(text="x" * 76)),
    "26 buttons in a row": (
        POST,
        MODELS,
        lambda one: block(one, "actions").update(elements=[button(one)] * 26),
    ),
    "a header of 151 characters": (
        HOME,
        MODELS,
        lambda one: block(one, "header")["text"].update(text="x" * 151),
    ),
    "six sources in a menu": (POST, MODELS, lambda one: menu(one).extend(menu(one)[:1] * 5)),
    "a text of spaces": (POST, RULES, lambda one: block(one, "section")["text"].update(text="  ")),
    "an empty row of buttons": (POST, RULES, lambda one: block(one, "actions")["elements"].clear()),
    "an address without a host": (POST, RULES, lambda one: button(one).update(url="/v/1")),
    "an address that runs a script": (POST, RULES, lambda one: button(one).update(url="javascript:alert(1)")),
    "an address of 3001 characters": (
        POST,
        RULES,
        lambda one: button(one).update(url="https://a.b/" + "x" * 3000),
    ),
    "a value of 2001 characters": (POST, RULES, lambda one: button(one).update(value="x" * 2001)),
    "a label of a menu of 76 characters": (
        POST,
        RULES,
        lambda one: menu(one)[0]["text"].update(text="x" * 76),
    ),
    "one action twice in a block": (
        POST,
        RULES,
        lambda one: block(one, "actions")["elements"].append(button(one)),
    ),
    "one block twice": (POST, RULES, lambda one: one["blocks"].append(block(one, "actions"))),
    "an id of 256 characters": (POST, RULES, lambda one: block(one, "actions").update(block_id="x" * 256)),
    "51 blocks": (POST, RULES, lambda one: one.update(blocks=[render_sentences("x")] * 51)),
    "more characters than a message has": (
        POST,
        RULES,
        lambda one: one.update(blocks=[render_sentences("x" * 2900)] * 5),
    ),
    "101 blocks of a view": (
        HOME,
        RULES,
        lambda one: one["view"].update(blocks=[render_sentences("x")] * 101),
    ),
    "a view's own data of 3001 characters": (
        HOME,
        RULES,
        lambda one: one["view"].update(private_metadata="x" * 3001),
    ),
    "neither words nor blocks": (POST, RULES, lambda one: one.update(text="", blocks=[])),
    "five prompts": (PROMPTS, RULES, lambda one: one.update(prompts=one["prompts"][:1] * 5)),
    "51 blocks in a stream": (
        STREAM,
        RULES,
        lambda one: one["chunks"][0].update(blocks=[render_sentences("x")] * 51),
    ),
    "an empty preview": (
        "chat.unfurl",
        RULES,
        lambda one: block(next(iter(one["unfurls"].values())), "section")["text"].update(text=""),
    ),
    "words of 1001 characters for a picture": (UPLOAD, RULES, lambda one: one.update(alt_txt="x" * 1001)),
}


@for_each("method", GOOD)
def test_our_payloads_are_accepted(method: str) -> None:
    """No validator reports a fault."""
    assert faults_of(method, GOOD[method]) == []


@for_each("name", BROKEN)
def test_a_broken_payload_is_refused(name: str) -> None:
    """The expected validator reports it."""
    method, judge, fault = BROKEN[name]
    broken = copy.deepcopy(GOOD[method])
    fault(broken)
    judges: dict[str, list[str]] = {
        SCHEMA: schema_faults(method, broken),
        MODELS: model_faults(broken),
        RULES: rule_faults(broken),
    }
    assert judges[judge]
    assert faults_of(method, broken) == [said for one in judges.values() for said in one]


def test_a_method_without_a_schema_is_refused() -> None:
    """Shows that a method unknown to the validators is not skipped."""
    assert schema_faults("chat.scheduleMessage", message())
