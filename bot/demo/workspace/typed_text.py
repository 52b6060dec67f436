"""What a person typed, as Slack's clients send it: escaped, mentions and links as tokens."""

import re
from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.people import User

_TOKEN = re.compile(r"(<(?:[@#][UWC][A-Z0-9]+(?:\|[^<>]*)?|![a-z^A-Z0-9|]+|https?://[^\s<>]+)>)")
_AT_NAME = re.compile(r"(?<![\w@/])@([\w.-]*\w)")
_URL = re.compile(r"(https?://[^\s<>|]+[^\s<>|.,;:!?)\]'\"])")
_MENTION = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
_ENTITY = re.compile(r"&(?!(?:amp|lt|gt);)")


def escape(text: str) -> str:
    """`&`, `<` and `>` as entities; entities that are there already stay."""
    return _ENTITY.sub("&amp;", text).replace("<", "&lt;").replace(">", "&gt;")


def as_sent(text: str, users: Iterable[User]) -> str:
    """`@name` of a known user and bare links become tokens; tokens written out stay."""
    by_name = {user.name: user.id for user in users}
    pieces = _alternating(_TOKEN, text)
    return "".join(s if is_token else _plain_as_sent(s, by_name) for is_token, s in pieces)


def _plain_as_sent(text: str, by_name: dict[str, str]) -> str:
    pieces = _alternating(_URL, text)
    return "".join(
        f"<{escape(s)}>" if is_url else _names_as_sent(s, by_name) for is_url, s in pieces
    )


def _alternating(pattern: re.Pattern[str], text: str) -> Iterator[tuple[bool, str]]:
    """The text in pieces, each with whether the pattern, which is one group, matched it."""
    return ((at % 2 == 1, piece) for at, piece in enumerate(pattern.split(text)))


def _names_as_sent(text: str, by_name: dict[str, str]) -> str:
    def resolve(match: re.Match[str]) -> str:
        user = by_name.get(match.group(1))
        return f"<@{user}>" if user else match.group()

    return _AT_NAME.sub(resolve, escape(text))


def mentioned(text: str) -> frozenset[str]:
    return frozenset(_MENTION.findall(text))


def as_rich_text(text: str) -> JsonObject:
    """The `rich_text` block that Slack's clients attach to what a person typed."""
    elements: list[JsonValue] = [
        _token_element(piece) if is_token else {"type": "text", "text": unescape(piece)}
        for is_token, piece in _alternating(_TOKEN, text)
        if piece
    ]
    section: JsonObject = {"type": "rich_text_section", "elements": elements}
    return {"type": "rich_text", "elements": [section]}


def _token_element(token: str) -> JsonObject:
    target = token[1:-1].partition("|")[0]
    if target.startswith("@"):
        return {"type": "user", "user_id": target[1:]}
    if target.startswith("#"):
        return {"type": "channel", "channel_id": target[1:]}
    if target in {"!here", "!channel", "!everyone"}:
        return {"type": "broadcast", "range": target[1:]}
    if target.startswith("http"):
        return {"type": "link", "url": unescape(target)}
    return {"type": "text", "text": token}


def unescape(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
