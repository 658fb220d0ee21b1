"""Reply texts: complete in every language, with the same placeholders."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from importlib.resources import files
from string import Formatter
from typing import Any

from harness.tables import for_each

from bot.core.models import Answer, AnswerState, Correction, Language
from bot.core.wording import reply_words
from storage.models import Channel, ChannelKey, Platform

# Words of the form of address that Slack does not use in a language.
OTHER_ADDRESS = {
    Language.GERMAN: r"\b(Sie|Ihnen|Ihr\w*)\b",
    Language.FRENCH: r"\b(tu|te|toi|ton|tes)\b",
    Language.SPANISH: r"\b[Uu]sted",
    Language.ITALIAN: r"\b(Lei|La prego|Suo|Suoi)\b",
    Language.DUTCH: r"\b([Uu]|[Uu]w)\b",
    Language.PORTUGUESE: r"\b(tu|te|teu|tua|contigo)\b",
}


def catalogue(language: Language) -> dict[str, Any]:
    """Return a language's reply file, parsed."""
    text = files("bot.core").joinpath("replies", f"{language}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def places(sentence: str) -> set[str]:
    """Return the placeholders of a sentence."""
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


@for_each("language", list(Language))
def test_every_language_has_the_same_keys(language: Language) -> None:
    """Shows that no key is missing or extra, and that placeholders match those in English."""
    said, english = catalogue(language), catalogue(Language.ENGLISH)
    assert list(said) == list(english)
    for key, sentence in said.items():
        assert type(sentence) is type(english[key]), key
        if isinstance(sentence, str):
            assert places(sentence) == places(english[key]), key
        else:
            assert sentence.keys() == {"one", "other"}, key
            assert places(sentence["other"]) == places(english[key]["other"]), key
            assert places(sentence["one"]) | {"count"} == places(sentence["other"]) | {"count"}, key


@for_each("language", [language for language in Language if language is not Language.ENGLISH])
def test_every_sentence_is_translated(language: Language) -> None:
    """Shows that no sentence is left in English, except marks such as "p. 3 · title"."""
    said, english = catalogue(language), catalogue(Language.ENGLISH)
    same = {key for key in said if said[key] == english[key]}
    assert same <= {
        "source",
        "source_by_ocr",
        "document_named",
        "pages",
        "version",
    }


@for_each("language", list(OTHER_ADDRESS))
def test_one_form_of_address_per_language(language: Language) -> None:
    """Shows that no sentence mixes du and Sie, tu and vous."""
    said = catalogue(language)
    assert [key for key, text in said.items() if re.search(OTHER_ADDRESS[language], str(text))] == []


@for_each("language", list(Language))
def test_singular_and_plural_differ(language: Language) -> None:
    """Shows a singular in each language, used for zero in French and Portuguese only."""
    words = reply_words(language)
    for counted in (words.not_found_in, words.still_reading, words.more_sources, words.pages):
        assert counted(1) != counted(2).replace("2", "1")
        is_zero_one = language in {Language.FRENCH, Language.PORTUGUESE}
        assert (counted(0) == counted.one.format(count=0)) == is_zero_one
    assert words.figures_lead(1) != words.figures_lead(2)


def test_placeholder_values_are_not_formatted_again() -> None:
    """Shows that braces in a document's name are not formatted."""
    words = reply_words(Language.GERMAN)
    assert words.nearest(title="{page} {0}", page=3).endswith("{page} {0}, S. 3")
    assert words.source_label(3, "{page}", is_ocr=True) == "S. 3 (OCR) · {page}"


def test_unknown_words_are_quoted_in_the_languages_style() -> None:
    """Covers one and several words and documents; of four words the longest are named."""
    english, german = reply_words(Language.ENGLISH), reply_words(Language.GERMAN)
    assert english.mentioned_nowhere(["overtime"], 12) == "None of your 12 documents mentions “overtime”."
    assert english.mentioned_nowhere(["{count}"], 1) == "Your document doesn’t mention “{count}”."
    assert german.mentioned_nowhere(["Rente", "Urlaub"], 3) == (
        "„Rente“ oder „Urlaub“ kommt in keinem deiner 3 Dokumente vor."
    )
    assert english.mentioned_nowhere(["rate", "overtime", "bonus", "salary"], 2) == (
        "None of your 2 documents mentions “overtime”, “bonus” or “salary”."
    )


def test_changes_to_the_query_are_listed_line_by_line() -> None:
    """Shows the standalone question, then each correction once; most answers have no such line."""
    pairs = [("bakcups", "backups"), ("Bakcups", "backups"), ("databsaes", "databases")]
    corrections = tuple(Correction(*pair) for pair in pairs)
    answer = Answer(AnswerState.GROUNDED, "Yes.", standalone="Why bakcups?", corrections=corrections)
    words = reply_words(Language.ENGLISH)
    assert words.query_notes(answer) == [
        "Searching for: Why bakcups?",
        "Spelling corrected: backups, databases",
    ]
    assert words.query_notes(replace(answer, standalone="", corrections=())) == []


@for_each("language", list(Language))
def test_chats_show_no_path_of_the_server(language: Language) -> None:
    """A channel without documents shows its folder's path on this machine only, with or without a name."""
    folder, words = "/srv/footnote/inbox/it", reply_words(language)
    for platform, conversation in (
        (Platform("slack"), "C0ITOPS01"),
        (Platform("teams"), "19:x@thread.tacv2"),
    ):
        tenant = ChannelKey(platform, "T0ACME001", conversation).tenant
        for name in (tenant, "#it"):
            said = words.no_documents(Channel(1, tenant, platform, name, 1), folder)
            assert "/" not in said
            assert ("#it" in said) is (name == "#it")
    assert folder in words.no_documents(Channel(1, tenant, Platform.LOCAL, "it", 1), folder)


def test_three_unread_files_are_named_and_the_others_counted() -> None:
    """Shows it in two languages."""
    names = ["a.pdf", "b.pdf", "c.pdf", "d.pdf", "e.pdf"]
    assert (
        reply_words(Language.ENGLISH).unreadable_files(names)
        == "I couldn’t read a.pdf, b.pdf, c.pdf and 2 more."
    )
    assert reply_words(Language.SPANISH).unreadable_files(names[:2]) == "No he podido leer a.pdf, b.pdf."
