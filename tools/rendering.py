"""From what a tool returned to the text a model is given: validate, allowlist, clean, redact, cap.

Pure and synchronous; the runner decides where it runs. Nothing unredacted gets past a failure here.
A result has at most 64 KiB of JSON, cut at a whole element, never silently: a giant text is cut with a
marker; then the largest list loses elements from its end; a result without lists loses fields. What
went is counted in `omitted`, and `truncated` is set.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import orjson
from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import PydanticSerializationError

from tools.call_limits import MAX_RESULT_BYTES
from tools.catalog import BoundTool
from tools.contract import ToolContract
from tools.errors import ToolErrorCode
from tools.failure import UNEXPECTED, WITHHELD, CallFailed
from tools.output import NotStrictJson, clean_value, to_json
from tools.redactor import Redactor

MIN_CAP_BYTES = 4096
CUT_MARK = "…[cut]"
# Short top-level fields without which a cut result could not be used or continued.
UNREAD_ENTRIES = "unread_entries"  # of the backends' answers: the result lacks them
_KEPT_FIELDS = ("next_cursor", "proposal_id", "range", UNREAD_ENTRIES)
_MAX_KEPT_BYTES = 1024 * 10
_RESERVE_BYTES = 1024  # for `truncated` and at most nine counts in `omitted`
_MAX_ROUNDS = 64
_MAX_COUNTS = 8
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.\[\]]{1,60}")
Container = dict[str, JsonValue] | list[JsonValue]


@dataclass(frozen=True, slots=True)
class Rendered:
    """What may leave. `cut` says that something is missing, by the tool's word or by the cap."""

    content: str
    cut: bool


def validated(contract: ToolContract, output: object) -> BaseModel:
    """The output, checked against the contract. Raises CallFailed(output_invalid)."""
    try:
        return contract.output.model_validate(output)
    except ValidationError as error:
        raise CallFailed(ToolErrorCode.OUTPUT_INVALID, UNEXPECTED) from error


def dumped(model: BaseModel) -> dict[str, JsonValue]:
    """Plain values; fields that are None are left out. Raises CallFailed(output_invalid)."""
    try:
        value: dict[str, JsonValue] = model.model_dump(mode="json", exclude_none=True)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise CallFailed(ToolErrorCode.OUTPUT_INVALID, UNEXPECTED) from error
    return value


def rendered(
    entry: BoundTool,
    value: dict[str, JsonValue],
    redactor: Redactor,
    max_bytes: int,
    unread: int = 0,
) -> Rendered:
    """The result as JSON; `unread` entries of answers could not be read, which it states.

    Raises CallFailed: output_invalid, or redaction_failed with nothing of the result.
    """
    opaque: dict[str, JsonValue] = {}
    try:
        clean = clean_value(entry.allowlist.apply(value))
        assert isinstance(clean, dict)  # noqa: S101 - the copy of a dict is a dict
        for name in entry.contract.opaque & clean.keys():
            opaque[name] = clean.pop(name)
        redacted = redacted_value(clean, redactor)
        stated: dict[str, JsonValue] = {UNREAD_ENTRIES: unread} if unread else {}
        whole, cut = capped({**redacted, **opaque, **stated}, max_bytes)
        content = to_json(whole)
    except NotStrictJson as error:
        raise CallFailed(ToolErrorCode.OUTPUT_INVALID, UNEXPECTED) from error
    return Rendered(content, cut or whole.get("truncated") is True)


def redacted_value(value: dict[str, JsonValue], redactor: Redactor) -> dict[str, JsonValue]:
    """The value with secrets masked. Raises CallFailed(redaction_failed), NotStrictJson."""
    to_json(value)  # fails for values outside strict JSON, before any change
    try:
        masked = redactor.redact_value(value)
    except Exception:  # noqa: BLE001 - redaction fails closed, whatever broke
        raise CallFailed(ToolErrorCode.REDACTION_FAILED, WITHHELD) from None
    if not isinstance(masked, dict):
        raise CallFailed(ToolErrorCode.REDACTION_FAILED, WITHHELD)
    return masked


def redacted_text(text: str, redactor: Redactor) -> str:
    """Raises CallFailed(redaction_failed), without the text anywhere in it."""
    redact: Callable[[str], str] = redactor.redact
    try:
        return redact(text)
    except Exception:  # noqa: BLE001 - redaction fails closed, whatever broke
        raise CallFailed(ToolErrorCode.REDACTION_FAILED, WITHHELD) from None


def capped(
    value: dict[str, JsonValue], max_bytes: int = MAX_RESULT_BYTES
) -> tuple[dict[str, JsonValue], bool]:
    """The value, and whether it had to be cut to `max_bytes` of JSON. The argument is unchanged.

    Raises ValueError when `max_bytes` is under 4 KiB.
    """
    if max_bytes < MIN_CAP_BYTES:
        raise ValueError("the result cap is under 4 KiB")
    if _size(value) <= max_bytes:
        return value, False
    kept = {key: value[key] for key in _KEPT_FIELDS if key in value}
    if _size(kept) > min(_MAX_KEPT_BYTES, max_bytes // 2):
        kept = {}
    body = orjson.loads(orjson.dumps({key: v for key, v in value.items() if key not in kept}))
    omitted: dict[str, JsonValue] = {}
    _shrink(body, max_bytes - _size(kept) - _RESERVE_BYTES, omitted)
    notice: dict[str, JsonValue] = {"truncated": True}
    if omitted:
        notice["omitted"] = omitted
    return {**body, **kept, **notice}, True


def _size(value: JsonValue) -> int:
    return len(orjson.dumps(value))


def _shrink(body: dict[str, JsonValue], budget: int, omitted: dict[str, JsonValue]) -> None:
    for _ in range(_MAX_ROUNDS):
        excess = _size(body) - budget
        if excess <= 0:
            return
        cut = (
            _cut_text(body, budget // 4, giant=budget // 2)
            or _cut_list(body, excess, omitted)
            or _cut_fields(body, excess, omitted)
        )
        if not cut:
            break
    body.clear()
    _count(omitted, "result", 1)


def _containers(root: dict[str, JsonValue]) -> Iterator[tuple[str, Container]]:
    waiting: list[tuple[str, Container]] = [("", root)]
    while waiting:
        path, holder = waiting.pop()
        yield path, holder
        for key, item in _entries(holder):
            if isinstance(item, dict | list):
                step = "[]" if isinstance(key, int) else f".{key}" if path else key
                waiting.append((f"{path}{step}"[:200], item))


def _entries(holder: Container) -> Iterator[tuple[str | int, JsonValue]]:
    yield from (holder.items() if isinstance(holder, dict) else enumerate(holder))


def _cut_text(body: dict[str, JsonValue], target_bytes: int, *, giant: int) -> bool:
    best: tuple[Container, str | int, str] | None = None
    for _, holder in _containers(body):
        for key, item in _entries(holder):
            if isinstance(item, str) and (best is None or len(item) > len(best[2])):
                best = (holder, key, item)
    if best is None or _size(best[2]) <= giant:
        return False
    holder, key, text = best
    # Escapes may make the JSON up to six times the text: halve until it fits.
    keep = text.encode()[:target_bytes].decode(errors="ignore")
    while _size(keep) > target_bytes:
        keep = keep[: len(keep) // 2]
    if isinstance(holder, dict):
        holder[str(key)] = keep + CUT_MARK
    elif isinstance(key, int):
        holder[key] = keep + CUT_MARK
    return True


def _cut_list(body: dict[str, JsonValue], excess: int, omitted: dict[str, JsonValue]) -> bool:
    lists = [
        (_size(holder[1:]), path, holder)
        for path, holder in _containers(body)
        if isinstance(holder, list) and len(holder) > 1
    ]
    if not lists:
        return False
    _, path, largest = max(lists, key=lambda found: found[0])
    gone, freed = 0, 0
    while len(largest) > 1 and freed < excess:
        freed += _size(largest.pop()) + 1
        gone += 1
    _count(omitted, path, gone)
    return True


def _cut_fields(body: dict[str, JsonValue], excess: int, omitted: dict[str, JsonValue]) -> bool:
    found = [
        (min(_size(holder), excess), len(holder), path, holder)
        for path, holder in _containers(body)
        if isinstance(holder, dict) and len(holder) > 1
    ]
    if not found:
        return False
    _, _, path, largest = max(found, key=lambda item: item[:2])
    gone, freed = 0, 0
    while len(largest) > 1 and freed < excess:
        freed += _size(dict([largest.popitem()]))
        gone += 1
    _count(omitted, path or "fields", gone)
    return True


def _count(omitted: dict[str, JsonValue], path: str, number: int) -> None:
    """Add to the count of a path; odd or too many paths are counted together."""
    plain = _PLAIN_PATH.fullmatch(path) is not None
    label = path if plain and (path in omitted or len(omitted) < _MAX_COUNTS) else "other"
    before = omitted.get(label, 0)
    omitted[label] = number + (before if isinstance(before, int) else 0)
