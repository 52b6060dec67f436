"""Key-aware redaction of JSON values: what a field's name says about what it holds.

Names are in `fields.toml`. Texts of one value are redacted together, which is what makes it fast.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from pydantic import JsonValue

from bot.privacy.lists import read
from bot.privacy.looks import assigned_quoted, is_reference
from tools.redactor import MASK_PREFIX

_SEPARATORS = re.compile(r"[^a-z0-9]+")
# Between two texts: no rule reaches across a NUL.
_BETWEEN: Final = "\n\0\n"
_SECRET_KIND: Final = "Secret"  # noqa: S105 - a Kubernetes kind
_SECRET_PARTS: Final = ("data", "stringData")

Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class _Names:
    always: frozenset[str]
    usually: frozenset[str]
    suffixes: tuple[str, ...]
    usual_suffixes: tuple[str, ...]
    copies: frozenset[str]


def redacted(value: JsonValue, redact: Redact, mask: Redact) -> JsonValue:
    """`redact` gets texts, many at once; `mask` gets what stands under a secret's name."""
    kept = _masked(value, mask)
    texts: list[str] = []
    _gather(kept, texts)
    return _filled(kept, iter(_redacted_texts(texts, redact)))


def _redacted_texts(texts: list[str], redact: Redact) -> list[str]:
    if not any("\0" in t for t in texts):
        parts = redact(_BETWEEN.join(texts)).split(_BETWEEN)
        if len(parts) == len(texts):
            return parts
    return [redact(t) for t in texts]


def _gather(value: JsonValue, texts: list[str]) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, list):
        for item in value:
            _gather(item, texts)
    elif isinstance(value, dict):
        for name, item in value.items():
            texts.append(name)
            _gather(item, texts)


def _filled(value: JsonValue, texts: Iterator[str]) -> JsonValue:
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, list):
        return [_filled(item, texts) for item in value]
    if isinstance(value, dict):
        return {next(texts): _filled(item, texts) for item in value.values()}
    return value


def _masked(value: JsonValue, mask: Redact) -> JsonValue:
    """A copy with the values of secret fields masked."""
    if isinstance(value, list):
        return [_masked(item, mask) for item in value]
    if not isinstance(value, dict):
        return value
    is_secret = value.get("kind") == _SECRET_KIND
    pair = value.get("name") if isinstance(value.get("name"), str) else value.get("key")
    kept: dict[str, JsonValue] = {}
    for name, item in value.items():
        if is_secret and name in _SECRET_PARTS:
            kept[name] = _all_masked(item, mask)
        elif name in _names().copies and isinstance(item, str) and _SECRET_KIND in item:
            kept[name] = mask(item)
        elif isinstance(item, str | int | float) and not isinstance(item, bool):
            # `{"name": "DB_PASSWORD", "value": …}` names its value beside it.
            under = pair if name == "value" and isinstance(pair, str) else name
            kept[name] = mask(str(item)) if _is_secret(under, item) else item
        else:
            kept[name] = _masked(item, mask)
    return kept


def _all_masked(value: JsonValue, mask: Redact) -> JsonValue:
    if isinstance(value, dict):
        return {name: _all_masked(item, mask) for name, item in value.items()}
    if isinstance(value, list):
        return [_all_masked(item, mask) for item in value]
    return value if value is None or _is_marked(value) else mask(str(value))


def _is_secret(name: str, value: str | float) -> bool:
    names = _names()
    plain = _SEPARATORS.sub("", name.lower())
    text = str(value)
    if _is_marked(value) or not text.strip():
        return False
    if plain in names.always or plain.endswith(names.suffixes):
        return not is_reference(text)
    if not isinstance(value, str) or not (
        plain in names.usually or plain.endswith(names.usual_suffixes)
    ):
        return False
    return assigned_quoted(name, text)


def _is_marked(value: JsonValue) -> bool:
    return isinstance(value, str) and MASK_PREFIX in value


def prepare() -> None:
    """Read the lists now; at the first result it would hold up the loop."""
    _names()


@cache
def _names() -> _Names:
    read_names = read("fields")
    return _Names(
        frozenset(read_names["always"]),
        frozenset(read_names["usually"]),
        tuple(read_names["suffixes"]),
        tuple(read_names["usual_suffixes"]),
        frozenset(read_names["copies"]),
    )
