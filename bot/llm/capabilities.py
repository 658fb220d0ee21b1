"""What a model at its endpoint does not take: learnt from refusals, and tried again after a while.

Endpoints change under their URL: a gateway is upgraded, a name leads to another model. So nothing is switched
off for good, and nothing by one bad reply.
"""

from __future__ import annotations

import re
from enum import StrEnum

from storage.clock import steady_seconds

# Seconds for which a feature is left out before it is tried again.
REST_SECONDS = 3600.0
# Failures in a row that do not name their cause, after which a feature counts as refused.
MAX_FAILURES = 3

# What a reasoning model may think beside its reply: its limit counts both.
REASONING_TOKENS = 4000


class Feature(StrEnum):
    """What not every model or endpoint takes, by the parameter of a request that asks for it."""

    SCHEMA = "response_format"
    STREAM = "stream"
    STREAM_USAGE = "stream_options"
    # Reasoning models take their own only.
    TEMPERATURE = "temperature"
    # Reasoning models call it ``max_completion_tokens``, and count what they think.
    MAX_TOKENS = "max_tokens"


class Capabilities:
    """What one model takes, as far as its replies have shown it."""

    def __init__(self) -> None:
        self._refused_until: dict[Feature, float] = {}
        self._failures: dict[Feature, int] = {}

    def takes(self, feature: Feature) -> bool:
        """True if to ask for it."""
        return steady_seconds() >= self._refused_until.get(feature, 0.0)

    def note_success(self, feature: Feature) -> None:
        """It was asked for and given."""
        self._failures.pop(feature, None)

    def note_failure(self, feature: Feature, *, is_refusal: bool) -> None:
        """It was asked for and not given; one refusal is enough, other failures may be chance."""
        failures = self._failures.get(feature, 0) + 1
        if is_refusal or failures >= MAX_FAILURES:
            self._refused_until[feature] = steady_seconds() + REST_SECONDS
            failures = 0
        self._failures[feature] = failures

    def sampling(self, tokens: int) -> dict[str, int]:
        """Temperature and longest reply of a request, in the words that this model takes."""
        temperature = {"temperature": 0} if self.takes(Feature.TEMPERATURE) else {}
        if self.takes(Feature.MAX_TOKENS):
            return {**temperature, "max_tokens": tokens}
        return {**temperature, "max_completion_tokens": tokens + REASONING_TOKENS}


def named_feature(param: object, message: str) -> Feature | None:
    """The feature that a refusal names, as its ``param`` or quoted in its message; None without a name."""
    named = {str(param or "").split(".")[0], *re.findall(r"['\"`](\w+)['\"`]", message)}
    return next((feature for feature in Feature if feature in named), None)
