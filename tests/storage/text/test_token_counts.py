"""Token and word-piece counters; the latter are checked against the tokenizer."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from storage.text.token_counts import (
    TOKENIZER,
    PieceCounter,
    bundled,
    count_tokens,
    open_tokenizer,
    truncate_tokens,
)

ODD = "\u0301\u0327\u200b\ufeff\t\n\x0b\x0c\x1c\x85\u00a0\u2003\u2028\u3000ßΣςİ世界。，①½ﬁ🙂-'., abcXYZ"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """The tokenizer that the encoder uses."""
    return open_tokenizer(bundled(TOKENIZER).read_bytes())


@given(st.lists(st.one_of(st.text(ODD), st.text(), st.sampled_from(["[SEP]", "[MASK]"]))))
def test_counts_of_words_add_up_to_the_count_of_the_text(tokenizer: Tokenizer, parts: list[str]) -> None:
    """Shows that caching words changes no count, whatever the text."""
    text = "".join(parts)
    assert PieceCounter(bundled(TOKENIZER))(text) == len(tokenizer.encode(text).ids)


@given(st.lists(st.one_of(st.text(ODD), st.text())))
def test_tokens_of_words_add_up_to_those_of_the_text(parts: list[str]) -> None:
    """Shows it for the other vocabulary, by cutting the whole text behind its last token and before it."""
    text = "x" + "".join(parts).encode(errors="replace").decode()
    count = count_tokens(text)
    assert truncate_tokens(text, count) == text != truncate_tokens(text, count - 1)


def test_a_real_text_and_an_endless_word_are_counted_exactly(tokenizer: Tokenizer) -> None:
    """Covers prose and a word too long to be cached."""
    prose = (Path(__file__).parents[3] / "LICENSE").read_text()
    for text in (prose, "x" * 10_000, ""):
        assert PieceCounter(bundled(TOKENIZER))(text) == len(tokenizer.encode(text).ids)


def test_a_counter_can_be_pickled() -> None:
    """Shows that another process counts alike."""
    counter = PieceCounter(bundled(TOKENIZER))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as elsewhere:
        assert elsewhere.submit(counter, "Remote work requests").result() == counter("Remote work requests")


def test_tokens_are_counted_as_cl100k_base_does() -> None:
    """Known counts of that vocabulary, computed without downloading it."""
    assert count_tokens("") == 0
    assert count_tokens("--- Page 12 ---") == 5
    assert count_tokens("tiktoken is great!") == 6


@given(st.text(max_size=50))
def test_any_text_can_be_counted(text: str) -> None:
    """Special tokens inside a document are plain text and never raise."""
    assert count_tokens(text + "<|endoftext|>") > 1
    assert count_tokens(text) <= len(text.encode()) + 1
