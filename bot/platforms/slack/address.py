"""Reply addresses in Slack: where an answer goes, who asked, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter

from storage.models import ChannelKey, Platform, TenantName

Json = dict[str, Any]

SLACK = Platform("slack")


@dataclass(frozen=True, slots=True)
class ButtonQuestion:
    """A question asked without a message, which the answer therefore shows."""

    user: str
    text: str
    # Channel whose documents were asked, if the answer goes to another.
    channel: str | None = None


@dataclass(frozen=True, slots=True)
class SlackFile:
    """A file of a message."""

    id: str


@dataclass(frozen=True, slots=True)
class SlackAddress:
    """Address of a reply or an announcement; fields with their default value are not stored."""

    channel: str
    # Key of the question; begins with the installation.
    key: str
    # Timestamp of the message; '' for a private question, which has none.
    ts: str = ""
    # None outside a thread of a direct chat; '' for a private question.
    thread: str | None = ""
    # '' once erased, and for notes on followed pages.
    user: str = ""
    # The person's workspace, and the bot's user id.
    team: str | None = None
    bot: str = ""
    asked: ButtonQuestion | None = None
    upload: SlackFile | None = None
    # Receives the answer to a private question.
    response_url: str = ""
    # True if the placeholder was the reply to the command; None if the question is not private.
    is_acknowledged: bool | None = None
    # Address of the upload that an announcement is about, on any platform.
    below: Json = field(default_factory=dict)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> SlackAddress:
        """Read a stored address; keys that storage added are ignored."""
        return _ADDRESS.validate_python(dict(stored))

    def to_json(self) -> Json:
        """Return the address to store, with the asker as in FOOTNOTE_ADMINS."""
        stored: Json = _ADDRESS.dump_python(self, mode="json", exclude_defaults=True)
        return stored | ({"asker": asker_of(self.installation, self.user)} if self.user else {})

    @property
    def installation(self) -> str:
        return self.key.partition(":")[0]

    @property
    def tenant(self) -> TenantName:
        """Tenant whose documents were asked."""
        conversation = (self.asked and self.asked.channel) or self.channel
        return ChannelKey(SLACK, self.installation, conversation).tenant

    @property
    def is_private(self) -> bool:
        """True if the question gets an ephemeral answer."""
        return bool(self.response_url)

    @property
    def is_typed_in_direct_chat(self) -> bool:
        return self.channel.startswith("D") and self.asked is None and self.upload is None

    @property
    def is_streamable(self) -> bool:
        """True if a known person typed in a channel, without a file."""
        is_typed = not self.channel.startswith("D") and self.asked is None and self.upload is None
        return is_typed and all((self.thread, self.user, self.team, self.bot))

    @property
    def session_thread(self) -> str:
        """Thread of the question's agent session; outside a thread, the one that the question opens."""
        return self.thread or self.ts

    @property
    def receipt_thread(self) -> str | None:
        return self.below.get("thread")


_ADDRESS = TypeAdapter(SlackAddress)


def asker_of(installation: str, user: str) -> str:
    """Return a person's id as in FOOTNOTE_ADMINS: ``slack:<installation>:<user>``."""
    return f"{SLACK}:{installation}:{user}"
