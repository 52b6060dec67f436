"""JSON as it is stored: one text for equal values, free of what UTF-8 cannot say."""

from dataclasses import asdict, is_dataclass
from typing import Any

import orjson

from bot.store.columns import clean


def dumps(value: object) -> str:
    """Canonical text: sorted keys, no spaces. Takes JSON values and dataclasses of them."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # a lone surrogate somewhere, or no JSON at all
        return orjson.dumps(_cleaned(value), option=orjson.OPT_SORT_KEYS).decode()


def loads(text: str) -> Any:
    """The value. The caller names its type."""
    return orjson.loads(text)


def _cleaned(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return _cleaned(asdict(value))
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(each) for each in value]
    return value
