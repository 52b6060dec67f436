"""The failures of talking to an outside system, one tree for every adapter.

AdapterError
├── Unreachable   no connection: DNS, refused, reset, TLS
├── TimedOut      no answer in time (also 408, 504)
├── Refused       401, 403, or our own egress guard: asking again does not help
├── NotFound      404, 410
├── BadRequest    any other 4xx, or a request that could not be formed
├── RateLimited   429: wait `retry_after_s`
├── Overloaded    5xx
└── BadAnswer     undecodable, too large, an unexpected redirect

Foreign exceptions become these in `adapters.http.mapped_errors`; those of nats-py in
`adapters.audit.nats`.
"""

from typing import ClassVar


class AdapterError(Exception):
    """A failure of an outside system.

    `message` holds no secret and may be shown to operators. `status` is the HTTP status when one
    was received. `retry_after_s` is what the other side asked for, in seconds. `retryable` says
    whether the same request may succeed later; its default belongs to the class.
    """

    retryable_by_default: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.retry_after_s = retry_after_s
        self.retryable = self.retryable_by_default if retryable is None else retryable


class Unreachable(AdapterError):
    """No connection, or it broke before the answer was whole."""

    retryable_by_default = True


class TimedOut(AdapterError):
    retryable_by_default = True


class Refused(AdapterError):
    """Not allowed: the credentials, the other side's policy, or our own egress guard."""


class NotFound(AdapterError):
    """The requested object does not exist there."""


class BadRequest(AdapterError):
    """The other side rejects the request in this form."""


class RateLimited(AdapterError):
    retryable_by_default = True


class Overloaded(AdapterError):
    """The other side failed or is overloaded."""

    retryable_by_default = True


class BadAnswer(AdapterError):
    """An answer that cannot be used: undecodable, too large, not what the protocol promises."""
