"""A proposed change in one line, and its JSON as lines that a person reads: one wording everywhere."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import orjson
from pydantic import JsonValue

from bot.domain.proposal import Proposal

_NAMED_CHARS: Final = 40  # longer values appear among the arguments only
_NAMED: Final = 3
_LEFT_OPEN: Final = "your deploy system picks the missing values"
_IN_A_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:/+-]{{0,{_NAMED_CHARS - 1}}}", re.ASCII)
_ROLLBACK = re.compile(
    r"roll[-_]?back(?:[-_](?:deploy|deployment|release|version))?", re.ASCII | re.IGNORECASE
)
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}", re.ASCII)
# What reads the same with and without quotes. A comma parts the entries of a list.
_PLAIN = re.compile(r"[A-Za-z0-9._:/+()%#=-]+(?: [A-Za-z0-9._:/+()%#=-]+)*", re.ASCII)


class _NotJson:
    pass


def named(row: Proposal) -> str:
    """`Restart host web-1 of web`: the action, what it is given as far as it is short, the product.

    From the stored record alone. Values that could read like a sentence are left to the arguments.
    A roll-back names both versions as far as they are known: `Roll back checkout: v2.4.0 → v2.3.7`.
    """
    if (rolled_back := _rollback(row)) is not None:
        return rolled_back
    action = row.action.replace("-", " ").replace("_", " ").strip()
    said = action.casefold().rpartition(" ")[2]  # "restart host" says "host" already
    short = _short(row.params)
    given = [v if k.casefold() == said and not n else f"{k} {v}" for n, (k, v) in enumerate(short)]
    what = f"{action[:1].upper()}{action[1:]}"
    if not given:
        return f"{what} of {row.product}" if " " in what else f"{what} {row.product}"
    return f"{what} {', '.join(given)} of {row.product}"


def _rollback(row: Proposal) -> str | None:
    params = _loaded(row.params)
    if not _ROLLBACK.fullmatch(row.action) or not isinstance(params, dict):
        return None
    if not params.keys() <= {"version", "reason"}:
        return None
    before = _version(_loaded(row.fingerprint), "version") or _version(_loaded(row.preview), "from")
    after = _version(params, "version") or ("" if "version" in params else chosen_version(row))
    if "version" in params and not after:
        return None
    what = f"Roll back {row.product}"
    if not after:
        return f"{what} to the version before {before}" if before else what
    return f"{what}: {before} → {after}" if before else f"{what} to {after}"


def chosen_version(row: Proposal) -> str:
    """The version that the dry run of a roll-back names; empty if it names none."""
    return _version(_loaded(row.preview), "to") if _ROLLBACK.fullmatch(row.action) else ""


def _version(facts: JsonValue | _NotJson, name: str) -> str:
    found = facts.get(name) if isinstance(facts, dict) else None
    return found if isinstance(found, str) and _IN_A_NAME.fullmatch(found) else ""


def values(text: str) -> Sequence[tuple[str, str]] | None:
    """A JSON object as names and values; None for another value, or for a name that is not a word.

    A value that is not a plain word or number is JSON text, so that nothing in it is lost.
    """
    said = _loaded(text)
    if not isinstance(said, dict) or not all(_KEY.fullmatch(key) for key in said):
        return None
    if orjson.dumps(said).decode() != text:  # a number that a float cannot hold, or a name twice
        return None
    return [(key, _value(value)) for key, value in said.items()]


def left_open(row: Proposal) -> str:
    """Who chooses what a proposal without any argument leaves open; empty for one that has some."""
    return _LEFT_OPEN if _loaded(row.params) == {} else ""


def outcome_words(outcome: str) -> str:
    """A stored outcome: what went wrong in plain words, then the rest line by line."""
    said = _loaded(outcome)
    if not isinstance(said, dict):
        return outcome
    error = said.get("error")
    if not isinstance(error, str):
        return "\n".join(_lines(said, ""))
    rest = {name: value for name, value in said.items() if name != "error"}
    return "\n".join((error, *_lines(rest, "")))


def _lines(said: Mapping[str, JsonValue], below: str) -> Iterator[str]:
    for name, value in said.items():
        if isinstance(value, dict) and value:
            yield from _lines(value, f"{below}{name}.")
        else:
            yield f"{below}{name}: {_value(value)}"


def _short(params: str) -> Sequence[tuple[str, str]]:
    said = _loaded(params)
    if not isinstance(said, dict) or len(said) > _NAMED:
        return ()
    words = [
        (key, value if isinstance(value, str) else _value(value)) for key, value in said.items()
    ]
    fits = all(_KEY.fullmatch(key) and _IN_A_NAME.fullmatch(value) for key, value in words)
    return words if fits else ()


def _value(value: JsonValue) -> str:
    if isinstance(value, str) and _is_plain(value):
        return value
    if isinstance(value, list) and len(value) > 1:
        words = [one for one in value if isinstance(one, str) and _is_plain(one)]
        if len(words) == len(value):
            return ", ".join(words)
    return orjson.dumps(value).decode()


def _is_plain(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and isinstance(_loaded(text), _NotJson)


def _loaded(text: str) -> JsonValue | _NotJson:
    try:
        value: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _NotJson()
    return value
