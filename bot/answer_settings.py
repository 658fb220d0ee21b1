"""Settings of the answers, which their stages are handed whole."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr

from storage.settings import Address, FootnoteSettings


class AnswerSettings(FootnoteSettings):
    """Searching, ranking, the models that write, and limits of an answer."""

    candidates: int = Field(24, ge=20, le=200, description="Passages considered for a question.")
    passages_read: int = Field(8, ge=1, le=40, description="Maximum passages read for an answer.")
    evidence_tokens: int = Field(
        6000, ge=500, le=200_000, description="Token budget of the passages read for an answer (cl100k_base)."
    )
    expansion_tokens: int = Field(
        0,
        ge=0,
        le=200_000,
        description="Token budget for context expansion: neighbouring chunks of the same section, and the "
        "rest of a table; 0 = off.",
    )
    words_weight: float = Field(
        0.45, ge=0, le=1, description="Weight of BM25 in the hybrid score; the rest is cosine similarity."
    )
    named_weight: float = Field(
        0.25, ge=0, le=1, description="Score boost for documents named in the question."
    )
    coverage_weight: float = Field(
        0.5, ge=0, le=1, description="Score boost for coverage of the question's words."
    )
    document_weight: float = Field(
        0.5, ge=0, le=1, description="Score boost for documents that contain the question's rarer words."
    )
    answer_probability: float = Field(
        0.53,
        ge=0,
        le=1,
        description="Without a model: minimum probability that passages answer the question; below it, the "
        "reply is that nothing was found. Measured with the bundled embedder; others are calibrated.",
    )
    outdated_share: float = Field(
        0.8, ge=0, le=1, description="Factor on the score of an outdated edition of a procedure."
    )
    recency_weight: float = Field(
        0.1, ge=0, le=0.5, description="Weight of a document's age in its score; 0 = off."
    )
    recency_half_life_days: float = Field(
        730, gt=0, le=36_500, description="Half-life of a document's freshness, in days."
    )
    reranker: str = Field(
        "sentences",
        pattern="^(none|sentences|folder|endpoint|model)$",
        description="Reranker of the candidates: none, sentences (their stored sentence vectors), folder (a "
        "cross-encoder), endpoint (a reranking API), or model (the one that writes answers).",
    )
    sentence_weight: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Weight of the most similar sentence in the reranked score; the rest is the search's.",
    )
    rerank_folder: Path | None = Field(
        None, description="Folder with model.onnx and tokenizer.json for FOOTNOTE_RERANKER=folder."
    )
    rerank_url: Address | None = Field(
        None,
        pattern="^https?://",
        description="URL of the reranking API for FOOTNOTE_RERANKER=endpoint, as in https://api.cohere.com/v2/rerank.",
    )
    rerank_model: str | None = Field(
        None, min_length=1, description="Model at FOOTNOTE_RERANK_URL; unset: its only one."
    )
    rerank_key: SecretStr | None = Field(
        None, description="API key for FOOTNOTE_RERANK_URL, sent as a bearer token."
    )
    rerank_weight: float = Field(
        0.7,
        ge=0,
        le=1,
        description="Weight of a model's or endpoint's score in the last order; the rest is the search's.",
    )
    rerank_candidates: int = Field(24, ge=2, le=200, description="Candidates passed to the reranker.")
    rerank_window: int = Field(
        512,
        ge=64,
        le=8192,
        description="Maximum tokens of a question with one passage that a cross-encoder reads.",
    )
    rerank_seconds: float = Field(
        3,
        gt=0,
        le=60,
        description="Timeout of the reranker in seconds; after that, the order of the search is used.",
    )
    rerank_threads: int = Field(2, ge=1, le=64, description="Threads of a cross-encoder.")
    reword: str = Field(
        "never",
        pattern="^(never|missed|always)$",
        description="Multi-query: when the model rephrases a question for the search: never, missed (after a "
        "search that found too little), or always.",
    )
    reword_seconds: float = Field(
        4,
        gt=0,
        le=60,
        description="Timeout of FOOTNOTE_REWORD in seconds; after that, only the question is searched.",
    )
    web_hits: int = Field(
        2,
        ge=1,
        le=20,
        description="Minimum keywords of a domain of web_sources.toml that a question must contain.",
    )
    web_domains: int = Field(
        2, ge=0, le=20, description="Maximum web domains searched for a question; 0 = off."
    )
    web_share: float = Field(
        0.95, ge=0, le=2, description="Factor on the score of web pages relative to documents."
    )
    web_snippet_words: int = Field(
        80, ge=20, le=400, description="Maximum words of a web page in a prompt or quote."
    )
    web_wait_seconds: float = Field(
        0,
        ge=0,
        le=10,
        description="Seconds a question waits for approved pages that were never fetched, such as newly "
        "listed ones; 2 are usually enough. 0 = do not wait; they are fetched in the background.",
    )
    question_chars: int = Field(
        4000, ge=100, le=100_000, description="Maximum length of a question, in characters."
    )
    openai_api_key: SecretStr | None = Field(
        None,
        validation_alias="OPENAI_API_KEY",
        description="API key of the model's endpoint; unset: answers are quotes.",
    )
    openai_base_url: Address | None = Field(
        None,
        validation_alias="OPENAI_BASE_URL",
        description="Any OpenAI-compatible endpoint; unset: OpenAI's own.",
    )
    openai_model: str = Field(
        "gpt-4o-mini", validation_alias="OPENAI_MODEL", description="Model that writes answers."
    )
    second_model: str | None = Field(
        None,
        min_length=1,
        description="Fallback model, if the first one fails or nothing it writes can be verified.",
    )
    second_model_url: Address | None = Field(
        None,
        pattern="^https?://",
        description="OpenAI-compatible endpoint of the second model; unset: the first one's, with its key.",
    )
    second_model_key: SecretStr | None = Field(None, description="API key of the second model's endpoint.")
    verify: str = Field(
        "model",
        pattern="^(model|words)$",
        description="What verifies that a model's sentence follows from its quotes: model (a short call, to "
        "the second model if there is one) or words. Facts are checked either way.",
    )
    answer_seconds: float = Field(
        90,
        gt=0,
        le=3600,
        description="Timeout of an answer in seconds; after that, passages are quoted instead.",
    )
    model_seconds: float = Field(60, gt=0, le=600, description="Timeout of a model's answer in seconds.")
    model_tokens: int = Field(
        800, ge=16, le=16_000, description="Maximum length of a model's answer, in tokens."
    )
    model_prompt_price: float | None = Field(
        None,
        ge=0,
        le=100_000,
        description="Price of a million tokens that models read, in your currency; with the next one, it "
        "makes the cost that the console shows under Usage.",
    )
    model_completion_price: float | None = Field(
        None, ge=0, le=100_000, description="Price of a million tokens that models write."
    )

    @property
    def has_model(self) -> bool:
        """True if a model writes answers; a self-hosted endpoint may need no key."""
        return self.openai_api_key is not None or self.openai_base_url is not None
