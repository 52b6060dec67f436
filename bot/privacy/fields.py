"""Key-aware redaction of JSON values: what a field's name says about what it holds.

Names are in `fields.toml`. Texts of one value are redacted together, which is what makes it fast.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from pydantic import JsonValue

from bot.privacy.lists import read
from bot.privacy.looks import assigned_quoted, is_reference
from tools.redactor import MASK_PREFIX

_SEPARATORS = re.compile(r"[^a-z0-9]+")
# Between two texts: no rule reaches across a NUL.
_BETWEEN: Final = "\n\0\n"
_FEW: Final = 64  # texts, with fewer findings of one rule than fill a window
_SECRET_KIND: Final = "Secret"  # noqa: S105 - a Kubernetes kind
_SECRET_PARTS: Final = ("data", "stringData")
_LONGEST_NAME: Final = 64  # of those remembered
_LONGEST_NAMES: Final = 1024  # of an object's, together
_ALWAYS: Final = "always"
_USUALLY: Final = "usually"

Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class _Names:
    always: frozenset[str]
    usually: frozenset[str]
    suffixes: tuple[str, ...]
    usual_suffixes: tuple[str, ...]
    copies: frozenset[str]


def redacted(
    value: JsonValue, redact: Redact, mask: Redact, *, is_dense: bool = False
) -> JsonValue:
    """Redact the texts of a JSON value: `redact` gets many at once; `mask` gets values of secret
    fields.

    `is_dense`: the texts have so many findings that few of them fit in one window of the rules.
    """
    texts: list[str] = []
    kept = _masked(value, mask, texts)
    found = _redacted_texts(texts, redact, len(texts) if not is_dense else _FEW)
    if found is texts:
        return kept
    return _filled(kept, iter(found))


def _redacted_texts(texts: list[str], redact: Redact, most: int) -> list[str]:
    """The same list where there was nothing to redact. At most `most` are redacted at once."""
    if len(texts) > most:
        parts = (texts[at : at + most] for at in range(0, len(texts), most))
        return [text for part in parts for text in _redacted_texts(part, redact, most)]
    joined = _BETWEEN.join(texts)
    if joined.count("\0") == max(0, len(texts) - 1):
        whole = redact(joined)
        if whole == joined:
            return texts
        found = whole.split(_BETWEEN)
        if len(found) == len(texts):
            return found
    if len(texts) > _FEW:  # a window that is full of findings is masked to its end
        return _redacted_texts(texts, redact, _FEW)
    return [redact(t) for t in texts]


def _filled(value: JsonValue, texts: Iterator[str]) -> JsonValue:
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, list):
        return [_filled(item, texts) for item in value]
    if isinstance(value, dict):
        return {next(texts): _filled(item, texts) for item in value.values()}
    return value


def _masked(value: JsonValue, mask: Redact, texts: list[str]) -> JsonValue:
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, list):
        return [_masked(item, mask, texts) for item in value]
    elif isinstance(value, dict):
        return _masked_fields(value, mask, texts)
    return value


def _masked_fields(
    fields: dict[str, JsonValue], mask: Redact, texts: list[str]
) -> dict[str, JsonValue]:
    is_secret = fields.get("kind") == _SECRET_KIND
    if not is_secret and _say_nothing(fields):
        return _unmasked_fields(fields, mask, texts)
    pair = fields.get("name") if isinstance(fields.get("name"), str) else fields.get("key")
    copies = _names().copies
    kept: dict[str, JsonValue] = {}
    for name, item in fields.items():
        texts.append(name)
        if is_secret and name in _SECRET_PARTS:
            kept[name] = _all_masked(item, mask, texts)
            continue
        # `{"name": "DB_PASSWORD", "value": …}` names its value beside it.
        under = pair if name == "value" and isinstance(pair, str) else name
        if isinstance(item, str):
            is_copy = name in copies and _SECRET_KIND in item
            shown = mask(item) if is_copy or _is_secret(under, item) else item
            kept[name] = shown
            texts.append(shown)
        elif isinstance(item, int | float) and _is_secret(under, item):
            kept[name] = shown = mask(str(item))
            texts.append(shown)
        else:
            kept[name] = _masked(item, mask, texts)
    return kept


def _unmasked_fields(
    fields: dict[str, JsonValue], mask: Redact, texts: list[str]
) -> dict[str, JsonValue]:
    kept = fields.copy()
    for name, item in fields.items():
        texts.append(name)
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict | list):
            kept[name] = _masked(item, mask, texts)
    return kept


def _say_nothing(fields: dict[str, JsonValue]) -> bool:
    names = tuple(fields)
    is_short = len("".join(names)) <= _LONGEST_NAMES
    return (_are_silent if is_short else _looked_up_silence)(names)


def _looked_up_silence(names: tuple[str, ...]) -> bool:
    copies = _names().copies
    return not any(name == "value" or name in copies or _looked_up_kind(name) for name in names)


_are_silent: Final = lru_cache(maxsize=256)(_looked_up_silence)  # lines of a result are similar


def _all_masked(value: JsonValue, mask: Redact, texts: list[str]) -> JsonValue:
    if isinstance(value, dict):
        kept: dict[str, JsonValue] = {}
        for name, item in value.items():
            texts.append(name)
            kept[name] = _all_masked(item, mask, texts)
        return kept
    if isinstance(value, list):
        return [_all_masked(item, mask, texts) for item in value]
    shown = value if value is None or _is_marked(value) else mask(str(value))
    if isinstance(shown, str):
        texts.append(shown)
    return shown


def _is_secret(name: str, value: str | float) -> bool:
    kind = _kind(name) if len(name) <= _LONGEST_NAME else _looked_up_kind(name)
    if not kind or isinstance(value, bool):
        return False
    text = str(value)
    if _is_marked(value) or not text.strip():
        return False
    if kind == _ALWAYS:
        return not is_reference(text)
    return isinstance(value, str) and assigned_quoted(name, text)


def _looked_up_kind(name: str) -> str:
    names = _names()
    plain = _SEPARATORS.sub("", name.lower())
    if plain in names.always or plain.endswith(names.suffixes):
        return _ALWAYS
    return _USUALLY if plain in names.usually or plain.endswith(names.usual_suffixes) else ""


_kind: Final = lru_cache(maxsize=1024)(_looked_up_kind)  # names repeat themselves


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
