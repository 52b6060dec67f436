"""The errors of the local workspace: what Slack answers, and what a person cannot do."""

from collections.abc import Sequence


class WorkspaceError(Exception):
    pass


class SlackRefused(WorkspaceError):
    """A Web API call answered `{"ok": false, "error": code}`, and with more.

    `messages` go to its metadata.
    """

    def __init__(self, code: str, messages: Sequence[str] = (), **more: str) -> None:
        super().__init__(code)
        self.code = code
        self.messages = tuple(messages)
        self.more = more


class RateLimited(SlackRefused):
    """The method's allowance is spent; HTTP 429 with `Retry-After`."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__("ratelimited")
        self.retry_after_s = retry_after_s


class CannotDoThat(WorkspaceError):
    """A person tried what Slack's own clients would not let them do."""
