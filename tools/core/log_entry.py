"""A log line as tools show it."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from tools.capabilities import LogLine
from tools.contract import ToolOutput
from tools.output import clean_text

MAX_MESSAGE_CHARS = 2000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LogEntry(ToolOutput):
    ts: str
    level: str | None = None
    host: str | None = None
    message: str
    trace_id: str | None = None


def log_entry(line: LogLine) -> LogEntry:
    return LogEntry.model_validate(log_fields(line))


def log_fields(line: LogLine) -> dict[str, str | None]:
    """What `log_entry` is made of: many are validated in one go."""
    return {
        "ts": _ts_text(line.ts_ns),
        "level": clean_text(line.level) or None,
        "host": clean_text(line.host) or None,
        "message": head(line.message),
        "trace_id": clean_text(line.trace_id) or None,
    }


def head(text: str) -> str:
    """The head of a long message, saying how much is missing."""
    cleaned = clean_text(text)
    missing = len(cleaned) - MAX_MESSAGE_CHARS
    return f"{cleaned[:MAX_MESSAGE_CHARS]}…[+{missing} chars]" if missing > 0 else cleaned


def _ts_text(ts_ns: int) -> str:
    """Milliseconds: what people read. Order within one is the page's order."""
    second, millis = divmod(ts_ns // 1_000_000, 1000)
    return f"{_second_text(second)}.{millis:03d}Z"


@lru_cache(maxsize=1024)  # lines come together
def _second_text(second: int) -> str:
    return (_EPOCH + timedelta(seconds=second)).isoformat()[:19]
