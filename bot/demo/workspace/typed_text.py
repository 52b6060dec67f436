"""What a person typed, as Slack's clients send it: escaped, mentions and links as tokens."""

import re
from collections.abc import Iterable

from pydantic import JsonValue

from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.people import User

_TOKEN = re.compile(r"<(?:[@#][UWC][A-Z0-9]+(?:\|[^<>]*)?|![a-z^A-Z0-9|]+|https?://[^\s<>]+)>")
_AT_NAME = re.compile(r"(?<![\w@/])@([\w.-]*\w)")
_URL = re.compile(r"https?://[^\s<>|]+[^\s<>|.,;:!?)\]'\"]")
_MENTION = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
_ENTITY = re.compile(r"&(?!(?:amp|lt|gt);)")


def escape(text: str) -> str:
    """`&`, `<` and `>` as entities; entities that are there already stay."""
    return _ENTITY.sub("&amp;", text).replace("<", "&lt;").replace(">", "&gt;")


def as_sent(text: str, users: Iterable[User]) -> str:
    """`@name` of a known user and bare links become tokens; tokens written out stay."""
    by_name = {user.name: user.id for user in users}
    sent: list[str] = []
    at = 0
    for token in _TOKEN.finditer(text):
        sent += [_plain_as_sent(text[at : token.start()], by_name), token.group()]
        at = token.end()
    sent.append(_plain_as_sent(text[at:], by_name))
    return "".join(sent)


def _plain_as_sent(text: str, by_name: dict[str, str]) -> str:
    linked: list[str] = []
    at = 0
    for url in _URL.finditer(text):
        linked += [_names_as_sent(text[at : url.start()], by_name), f"<{escape(url.group())}>"]
        at = url.end()
    linked.append(_names_as_sent(text[at:], by_name))
    return "".join(linked)


def _names_as_sent(text: str, by_name: dict[str, str]) -> str:
    def resolve(match: re.Match[str]) -> str:
        user = by_name.get(match.group(1))
        return f"<@{user}>" if user else match.group()

    return _AT_NAME.sub(resolve, escape(text))


def mentioned(text: str) -> frozenset[str]:
    return frozenset(_MENTION.findall(text))


def as_rich_text(text: str) -> JsonObject:
    """The `rich_text` block that Slack's clients attach to what a person typed."""
    elements: list[JsonValue] = []
    at = 0
    for token in _TOKEN.finditer(text):
        elements += _plain_element(text[at : token.start()])
        elements.append(_token_element(token.group()))
        at = token.end()
    elements += _plain_element(text[at:])
    section: JsonObject = {"type": "rich_text_section", "elements": elements}
    return {"type": "rich_text", "elements": [section]}


def _plain_element(text: str) -> list[JsonValue]:
    return [{"type": "text", "text": unescape(text)}] if text else []


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
