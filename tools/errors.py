"""The failures of a tool call, as codes a model can act on.

ToolError ├── InvalidArguments validation: the arguments do not fit; names what is wrong ├──
UpstreamFailed upstream: a backend answered 4xx/5xx; keeps its own useful message └──
CapabilityUnavailable unavailable: the backend is not reachable └── NobodyToAsk unavailable: this
asker has none here

Anything else raised by a tool is a bug and becomes `execution`, shown as "internal error".
"""

from enum import StrEnum


class ToolErrorCode(StrEnum):
    """Why a call failed; stable, used in metrics, audit and the JSON of `kortex ask`."""

    UNAVAILABLE = "unavailable"
    POLICY_DENIED = "policy_denied"
    AUTHZ_DENIED = "authz_denied"
    VALIDATION = "validation"
    INVALID_JSON = "invalid_json"
    TOOL_TIMEOUT = "tool_timeout"
    UPSTREAM = "upstream"
    EXECUTION = "execution"
    REDACTION_FAILED = "redaction_failed"
    OUTPUT_INVALID = "output_invalid"
    CANCELLED = "cancelled"


class ToolError(Exception):
    """A failure that a tool or a capability reports on purpose. The message reaches the model."""

    code = ToolErrorCode.EXECUTION

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidArguments(ToolError):
    """The arguments fit the schema but not the world (an unknown product, a bad time range)."""

    code = ToolErrorCode.VALIDATION


class UpstreamFailed(ToolError):
    """A backend refused or broke. `status` is its HTTP status, None when it never answered."""

    code = ToolErrorCode.UPSTREAM

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class CapabilityUnavailable(ToolError):
    """The backend a tool needs is not configured or cannot be reached."""

    code = ToolErrorCode.UNAVAILABLE


class NobodyToAsk(CapabilityUnavailable):
    """No backend was asked, as this channel or this person has none: it says nothing about any."""
