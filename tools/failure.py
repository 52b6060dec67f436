"""How a call fails inside the runner, and what each failure looks like to a model.

ToolError (tools.errors) is what tools raise; CallFailed is what the pipeline ends with.
"""

import orjson

from tools.errors import NobodyToAsk, ToolError, ToolErrorCode, UpstreamFailed

MAX_MESSAGE_CHARS = 2000
INTERNAL = "internal error"
WITHHELD = "the result is hidden, because it could not be redacted"
UNEXPECTED = "the tool gave an unexpected answer"


class CallFailed(Exception):
    """The call ends here. `message` still has to pass the text redactor.

    `asked`: whether the failure says something about what the tool asks.
    """

    def __init__(self, code: ToolErrorCode, message: str, *, asked: bool = True) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.asked = asked


def failure_of(error: Exception) -> CallFailed | None:
    """The failure a tool reported on purpose; None when the exception is a bug.

    A task group wraps what its children raise: a group with nothing but one reported failure is
    that failure.
    """
    if isinstance(error, CallFailed):
        return error
    if isinstance(error, UpstreamFailed):
        return CallFailed(error.code, _upstream_words(error))
    if isinstance(error, ToolError) and error.code is not ToolErrorCode.EXECUTION:
        return CallFailed(error.code, error.message, asked=not isinstance(error, NobodyToAsk))
    if isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        return failure_of(error.exceptions[0])
    return None


def _upstream_words(error: UpstreamFailed) -> str:
    words = error.message.strip().removeprefix("upstream:").strip()
    status = "" if error.status is None else str(error.status)
    if status and not words.startswith(status):
        words = f"{status} {words}".strip()
    return f"upstream: {words or 'no answer'}"


def error_content(code: ToolErrorCode, message: str, *, tool: str, elapsed: str) -> str:
    """The JSON a model is given instead of a result. `message` is redacted already."""
    if code is ToolErrorCode.TOOL_TIMEOUT:
        body = {"error": code.value, "elapsed": elapsed, "tool": tool}
    else:
        body = {"error": code.value, "message": message}
    return orjson.dumps(body).decode()


def duration_words(seconds: float) -> str:
    """`0.2s`, `30s`, `5m1s`, `1h2m3s`."""
    if seconds < 1:
        return f"{max(seconds, 0.0):.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)
