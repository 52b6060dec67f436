"""Structured logs: one JSON record a line, redacted last, on standard error."""

import logging
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any

import orjson
import structlog
from pydantic import JsonValue

from tools.output import json_bytes
from tools.redactor import RedactionFailed, Redactor

_NOISY = ("slack_bolt", "slack_sdk", "aiohttp.access", "dbos", "httpx", "asyncio")
# The MCP SDK writes a traceback for every line of nonsense that a server may send without end.
_MUTE = ("mcp", "client")


def configure(redactor: Redactor | None, *, level: str = "INFO") -> None:
    """Set up logging for the process. Without a redactor nothing but event names is written."""
    lines = _Lines(sys.stderr)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _Redacting(redactor),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level)),
        logger_factory=lambda *_: lines,
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Bridge()], level=logging.WARNING, force=True)
    for name in _NOISY:
        # Bolt and the SDK write whole payloads at INFO and DEBUG.
        logging.getLogger(name).setLevel(logging.ERROR)
    _route_workflow_library()
    for name in _MUTE:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _route_workflow_library() -> None:
    """DBOS gives its logger a handler to the standard error of its first start, past what redacts.

    Once that stream is closed every engine of the process fails at it. It does so only for a logger
    without a handler, so this one has ours from before.
    """
    library = logging.getLogger("dbos")
    library.handlers[:] = [_Bridge()]
    library.propagate = False


class _Lines(structlog.PrintLogger):
    """Writes lines; one that cannot be written (reader gone, disk full) breaks nothing."""

    def msg(self, message: str) -> None:
        with suppress(OSError, ValueError):  # the second: it is closed
            super().msg(message)

    log = debug = info = warn = warning = msg
    fatal = failure = err = error = critical = exception = msg


class _Redacting:
    def __init__(self, redactor: Redactor | None) -> None:
        self._redactor = redactor

    def __call__(self, _: Any, __: str, event: MutableMapping[str, Any]) -> str:
        line = _one_line(event)
        if self._redactor is None:
            return json_bytes(
                {"event": str(event.get("event")), "level": event.get("level")}
            ).decode()
        try:
            return orjson.dumps(_redacted(self._redactor, orjson.loads(line))).decode()
        except RedactionFailed:
            return '{"event":"log_record_not_redactable"}'


def _redacted(redactor: Redactor, record: dict[str, JsonValue]) -> JsonValue:
    """The id of our own session stays: by its field's name it would pass for a web session's
    secret.

    In a list its text alone is judged, like that of any other field. Raises RedactionFailed.
    """
    if not isinstance(session := record.get("session"), str):
        return redactor.redact_value(record)
    redacted = redactor.redact_value({**record, "session": [session]})
    assert isinstance(redacted, dict)  # noqa: S101 - of a dict
    return {
        name: value[0] if isinstance(value, list) and name == "session" else value
        for name, value in redacted.items()
    }


def _one_line(event: MutableMapping[str, Any]) -> str:
    """A log record must never break the work that it reports, whatever numbers and texts it has."""
    return json_bytes(event, orjson.OPT_NON_STR_KEYS, _as_text).decode()


def _as_text(value: object) -> str:
    return str(value).encode(errors="replace").decode()


class _Bridge(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger(record.name).log(
            record.levelno,
            record.getMessage(),
            logger=record.name,
            **({"exc_info": record.exc_info} if record.exc_info else {}),
        )
