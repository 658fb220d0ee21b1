"""Small talk, help and commands, told apart from questions to the documents."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

from harness.tables import for_each

from bot.answers.understanding.question_terms import language_of
from bot.chat.commands.chat_intents import ChatIntent, recognize
from bot.core.models import Language
from bot.core.wording import reply_words

MESSAGES = tomllib.loads((Path(__file__).parent / "messages.toml").read_text(encoding="utf-8"))
LABELLED = Path(__file__).parents[4] / "tools" / "evaluation" / "questions"
SHORT = Path(__file__).parents[2] / "answers" / "understanding" / "short_questions.toml"
QUESTION = "question"


@for_each(
    ("language", "intent", "text"),
    [
        (Language(language), intent, text)
        for language, said in MESSAGES.items()
        for intent, texts in said.items()
        for text in texts
    ],
)
def test_messages_to_the_bot_are_distinguished_from_questions(
    language: Language, intent: str, text: str
) -> None:
    """Shows each message's intent and language; a possible question is at most an uncertain command."""
    command = recognize(text, language_of(text) or language)
    if intent == QUESTION:
        assert command is None or not command.is_certain
    else:
        assert command is not None
        assert (command.intent, command.language) == (intent, language)


@for_each("language", list(Language))
def test_every_intent_has_its_messages_in_the_table(language: Language) -> None:
    """Shows that commands are English, and small talk, help and the wish for a person of every language."""
    everywhere = {"greeting", "thanks", "goodbye", "acknowledgement", "help", "human", QUESTION}
    is_english = language is Language.ENGLISH
    assert MESSAGES[language].keys() == ({*ChatIntent, QUESTION} if is_english else everywhere)


@for_each("language", list(Language))
def test_the_commands_that_help_names_are_recognised(language: Language) -> None:
    """Shows that what help suggests to type works in the language of the help, too."""
    listed, news = re.findall("(?:“|„|« ?|«)([^”“»]+?) ?(?:”|“|»)", reply_words(language).help)
    for text, intent in ((listed, ChatIntent.DOCUMENT_LIST), (news, ChatIntent.NEWS)):
        command = recognize(text, language)
        assert command is not None
        assert command.intent is intent


def test_no_question_of_the_evaluation_is_a_command() -> None:
    """No labelled or short question in any language is mistaken for a command."""
    lines = [line for file in LABELLED.glob("*.jsonl") for line in file.read_text("utf-8").splitlines()]
    asked = [json.loads(line)["question"] for line in lines]
    assert len(asked) > 500
    short = tomllib.loads(SHORT.read_text(encoding="utf-8"))
    asked += [
        text for texts in short.values() for text in texts if text.strip(" ?").casefold() not in {"", "ok"}
    ]
    commands = {text: recognize(text, language_of(text) or Language.ENGLISH) for text in asked}
    assert [text for text, one in commands.items() if one] == []


@for_each(
    ("text", "language", "name", "is_certain"),
    [
        ("Is SOP-IT-04 here?", Language.ENGLISH, "SOP-IT-04", True),
        ("Is the “Leave Policy” document in here, please?", Language.ENGLISH, "Leave Policy", True),
        ("do you have the leave policy", Language.ENGLISH, "leave policy", False),
        ("Is there a PDF called Fire Drill?", Language.ENGLISH, "Fire Drill", True),
        ("Is the IT policy in this channel?", Language.ENGLISH, "IT policy", True),
    ],
)
def test_a_document_is_looked_up_by_the_typed_name(
    text: str, language: Language, name: str, is_certain: bool
) -> None:
    """Shows that articles, quotes and "the document" are no part of it, and that capitals and accents are."""
    command = recognize(text, language)
    assert command is not None
    assert (command.intent, command.name, command.is_certain) == (
        ChatIntent.DOCUMENT_PRESENCE,
        name,
        is_certain,
    )


def test_a_long_message_is_no_command() -> None:
    """Shows that whoever writes much asks something."""
    assert recognize("thanks " * 50, Language.ENGLISH) is None


@for_each(
    "part", ["oh good ", "ok great ", "can you tell me ", "new documents here ", "list documents here "]
)
def test_a_repetitive_message_is_parsed_in_bounded_time(part: str) -> None:
    """Shows that ambiguous repetitions cause no exponential backtracking."""
    assert recognize((part * 50)[:190] + " or", Language.ENGLISH) is None
