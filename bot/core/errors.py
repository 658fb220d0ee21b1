"""The errors of the bot package.

::

    BotError
    ├── ModelError               the language model gave nothing that can be used
    │   ├── ModelUnavailable     down, late, refusing, rate-limited
    │   └── ModelReplyUnusable   cut off, empty, not what was asked for
    ├── RerankerError            the reranker is down or late, or gave no scores
    ├── DeliveryError            the chat platform did not take a message
    │   ├── DeliveryUnclear      nobody knows whether it did: search before posting again
    │   ├── ChannelClosed        nothing of ours can be posted in that channel
    │   │   └── WorkspaceLeft    nor in any other one of its workspace, which removed the app
    │   └── MembershipsUnknown   it does not say who is in which channel
    ├── FileUnavailable          an uploaded file cannot be had from its platform, now or later
    ├── FileBeingRead            an uploaded file is not read yet, so nothing can be asked about it
    └── LinkError
        ├── LinkForged           always the same 404, whatever is wrong with it
        └── LinkEnded            a good signature that expired, was revoked or lost its document: 410

People never see these texts: ``replies/`` and ``wording.py`` hold every sentence a person can read.
"""

from bot.core.models import Prompt


class BotError(Exception):
    """Base of every error this package raises."""


class ModelError(BotError):
    """The language model gave nothing that can be used."""

    # All that it was sent.
    prompts: tuple[Prompt, ...] = ()


class ModelUnavailable(ModelError):
    """The model's endpoint is down, late, refusing or rate-limited."""


class ModelReplyUnusable(ModelError):
    """The model's reply was cut off, empty or not what was asked for."""


class RerankerError(BotError):
    """The reranker is down, late or refusing, or gave something else than scores."""


class DeliveryError(BotError):
    """The chat platform did not take a message; ``retry_after`` are seconds it asked us to wait."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class DeliveryUnclear(DeliveryError):
    """The connection broke before the platform said whether it took the message."""


class ChannelClosed(DeliveryError):
    """The channel is archived or gone, or the bot is not in it."""


class WorkspaceLeft(ChannelClosed):
    """The workspace removed the app: nothing that waits for it is tried again."""


class MembershipsUnknown(DeliveryError):
    """The chat platform does not say who is in which channel: nothing may be shown until it does."""


class FileUnavailable(BotError):
    """The platform does not give out an uploaded file: it is gone, or we may not have it."""


class FileBeingRead(BotError):
    """An uploaded file is not read yet: what stands beside it is asked in a moment."""


class LinkError(BotError):
    """A link that opens nothing."""


class LinkForged(LinkError):
    """The signature is not ours."""


class LinkEnded(LinkError):
    """Our signature, but expired, revoked, or of a document that is gone."""

    def __init__(
        self,
        reason: str,
        channel_id: int | None = None,
        citation_id: int | None = None,
        *,
        chat_url: str | None = None,
        answer_url: str | None = None,
    ) -> None:
        """Of an expired link also its channel and citation, and where the channel and the answer are opened.

        None: nobody can say.
        """
        super().__init__(reason)
        self.channel_id = channel_id
        self.citation_id = citation_id
        self.chat_url = chat_url
        self.answer_url = answer_url
