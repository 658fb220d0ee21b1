"""The errors of the bot package.

::

    BotError
    ├── ModelError               the language model returned nothing usable
    │   ├── ModelUnavailable     endpoint down, timed out, refusing or rate-limited
    │   └── ModelReplyUnusable   truncated, empty or in the wrong format
    ├── RerankerError            the reranker is down, timed out or returned no scores
    ├── DeliveryError            the chat platform did not accept a message
    │   ├── DeliveryUnclear      outcome unknown: search before posting again
    │   ├── ChannelClosed        the bot cannot post in that channel
    │   │   └── AppUninstalled   nor anywhere in its workspace, which uninstalled the app
    │   └── MembershipsUnknown   the platform does not return channel memberships
    ├── FileUnavailable          an uploaded file cannot be downloaded, now or later
    ├── FileNotReady             an uploaded file is not searchable yet
    └── LinkError
        ├── LinkForged           bad signature: always the same 404, whatever is wrong
        └── LinkEnded            valid signature, but expired, revoked or document gone: 410

These texts are never shown to users: ``replies/`` and ``wording.py`` hold every sentence that is.
"""

from bot.core.models import Prompt
from storage.chat.citations import ShownIn
from storage.models import Channel


class BotError(Exception):
    """Base class of this package's errors."""


class ModelError(BotError):
    """The language model returned nothing usable."""

    # All prompts sent before it failed.
    prompts: tuple[Prompt, ...] = ()


class ModelUnavailable(ModelError):
    """The model's endpoint is down, timed out, refusing or rate-limited."""


class ModelReplyUnusable(ModelError):
    """The model's reply was truncated, empty or in the wrong format."""


class RerankerError(BotError):
    """The reranker is down, timed out, refusing, or returned something other than scores."""


class DeliveryError(BotError):
    """The chat platform did not accept a message; ``retry_after`` is in seconds, if it sent one."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class DeliveryUnclear(DeliveryError):
    """The connection broke before the platform confirmed the message: it may have been posted."""


class ChannelClosed(DeliveryError):
    """The channel is archived or deleted, or the bot is not a member."""


class AppUninstalled(ChannelClosed):
    """The workspace uninstalled the app: nothing pending for it is retried."""


class MembershipsUnknown(DeliveryError):
    """The platform does not return channel memberships: show nothing until it does."""


class FileUnavailable(BotError):
    """An uploaded file cannot be downloaded: it was deleted, or access is denied."""


class FileNotReady(BotError):
    """An uploaded file is not searchable yet: the question that came with it must wait."""


class LinkError(BotError):
    """A link that cannot be opened."""


class LinkForged(LinkError):
    """The link's signature is invalid."""


class LinkEnded(LinkError):
    """The link's signature is valid, but it expired, was revoked, or its document is gone."""

    def __init__(
        self,
        reason: str,
        channel_id: int | None = None,
        citation_id: int | None = None,
        place: tuple[Channel, ShownIn | None] | None = None,
    ) -> None:
        """Create the error; an expired link's also names its channel and citation.

        ``place``: the channel, and the message in it that shows the answer, if they are known.
        """
        super().__init__(reason)
        self.channel_id = channel_id
        self.citation_id = citation_id
        self.place = place
