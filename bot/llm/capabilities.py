"""Optional request features that a model does not support, learnt from refusals and retried after a while.

What sits behind a URL changes: a gateway is upgraded, a name is routed to another model. So no feature is
disabled permanently, and none by a single failure that may be chance.
"""

from __future__ import annotations

import re
from enum import StrEnum

from storage.clock import monotonic_seconds

# Seconds before a refused feature is tried again.
RETRY_AFTER_SECONDS = 3600.0
# Consecutive failures without a named cause that count as a refusal.
MAX_FAILURES = 3

# Added for reasoning models, whose limit counts reasoning and reply together.
REASONING_TOKENS = 4000


class Feature(StrEnum):
    """Optional features of a request, each named by the parameter that asks for it."""

    SCHEMA = "response_format"
    STREAM = "stream"
    STREAM_USAGE = "stream_options"
    # Reasoning models accept only their default.
    TEMPERATURE = "temperature"
    # Reasoning models call it ``max_completion_tokens``, and count reasoning tokens.
    MAX_TOKENS = "max_tokens"


class Capabilities:
    """Features that one model supports, as far as its replies have shown."""

    def __init__(self) -> None:
        self._refused_until: dict[Feature, float] = {}
        self._failures: dict[Feature, int] = {}

    def supports(self, feature: Feature) -> bool:
        """True if the feature may be requested."""
        return monotonic_seconds() >= self._refused_until.get(feature, 0.0)

    def note_success(self, feature: Feature) -> None:
        """Record that the model honoured the feature; resets its count of failures."""
        self._failures.pop(feature, None)

    def note_failure(self, feature: Feature, *, is_refusal: bool) -> None:
        """Record that it did not: a refusal disables the feature at once, other failures may be chance."""
        failures = self._failures.get(feature, 0) + 1
        if is_refusal or failures >= MAX_FAILURES:
            self._refused_until[feature] = monotonic_seconds() + RETRY_AFTER_SECONDS
            failures = 0
        self._failures[feature] = failures

    def sampling(self, tokens: int) -> dict[str, int]:
        """Return temperature and maximum reply length, in the parameters that this model accepts."""
        temperature = {"temperature": 0} if self.supports(Feature.TEMPERATURE) else {}
        if self.supports(Feature.MAX_TOKENS):
            return {**temperature, "max_tokens": tokens}
        return {**temperature, "max_completion_tokens": tokens + REASONING_TOKENS}


def named_feature(param: object, message: str) -> Feature | None:
    """Return the feature named in a refusal's ``param`` or quoted in its message; None if there is none."""
    named = {str(param or "").split(".")[0], *re.findall(r"['\"`](\w+)['\"`]", message)}
    return next((feature for feature in Feature if feature in named), None)
