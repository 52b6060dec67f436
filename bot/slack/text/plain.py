"""Slack's markup as the plain text that a person typed or reads.

Slack rewrites what people type: `checkout.io` arrives as `<http://checkout.io|checkout.io>`
(https://docs.slack.dev/messaging/formatting-message-text). Kortex undoes this before it reads a
message, so that a product, a host or an address keeps its own name.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

_TOKEN: Final = re.compile(r"<([^<>]*)>")
_ENTITIES: Final = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))  # the ampersand last
# What Slack puts before text that it links by itself.
_LINKED_BY_SLACK: Final = re.compile(r"(?:https?://|mailto:|tel:)", re.IGNORECASE)
# Apps escape twice: `&amp;gt;` is `>` to people.
_ESCAPED_TWICE: Final = re.compile(r"&amp;(?=(?:amp|lt|gt);)")
_DATE: Final = re.compile(r"date\^(-?[0-9]{1,12})(?:\^|\Z)")
_1970: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Codes of one word, each with its skin tone. Of `10:15:30` and `svc:web:80` nothing is one.
_EMOJI: Final = re.compile(r":(?P<name>[a-z0-9+_'-]{1,64}):(?::skin-tone-[2-6]:)?")
_EMOJIS: Final = re.compile(rf"(?<![\w:/])(?:{_EMOJI.pattern.replace('?P<name>', '?:')})+(?![\w:])")
_INVISIBLE: Final = re.compile(r"[\s\u200b-\u200f\u2060\ufeff]*")
# Slack's own names that differ from Unicode's: https://github.com/iamcal/emoji-data
_EMOJI_NAMES: Final = {
    "+1": "👍", "thumbsup": "👍", "-1": "👎", "thumbsdown": "👎", "rotating_light": "🚨", "white_check_mark": "✅",
    "heavy_check_mark": "✔", "x": "❌", "warning": "⚠", "tada": "🎉", "boom": "💥", "red_circle": "🔴",
    "large_green_circle": "🟢", "large_yellow_circle": "🟡", "large_orange_circle": "🟠", "large_blue_circle": "🔵",
    "green_heart": "💚", "question": "❓", "exclamation": "❗", "bangbang": "‼", "pray": "🙏", "thread": "🧵",
    "wave": "👋", "ok_hand": "👌", "raised_hands": "🙌", "sob": "😭", "scream": "😱", "thinking_face": "🤔",
    "sos": "🆘", "new": "🆕", "arrow_up": "⬆", "arrow_down": "⬇", "chart_with_upwards_trend": "📈",
    "chart_with_downwards_trend": "📉", "no_entry": "⛔", "no_entry_sign": "🚫", "lock": "🔒", "phone": "☎",
    "email": "✉", "hammer_and_wrench": "🛠", "construction": "🚧", "zap": "⚡", "bulb": "💡", "mag": "🔍",
    "point_up": "☝", "point_right": "👉", "clap": "👏", "muscle": "💪", "100": "💯", "computer": "💻",
}  # fmt: skip
# Text objects of headers, sections, images, videos and cards.
_WORDED: Final = ("title", "subtitle", "text", "body", "description")
_MOST_PARTS: Final = 200  # texts of one message's blocks and attachments


def plain_text(text: str, mention: Callable[[str], str], unnamed_channel: str = "") -> str:
    """The text without tokens, codes and entities. `mention` names a user by id, or returns "".

    `unnamed_channel` stands for a channel that Slack gives without its name; "" shows its id.
    """

    def readable_token(found: re.Match[str]) -> str:
        return _readable(found.group(1), mention, unnamed_channel)

    readable = _TOKEN.sub(readable_token, _ESCAPED_TWICE.sub("&", text))
    readable = _EMOJIS.sub(lambda codes: _EMOJI.sub(_emoji, codes[0]), readable)
    for entity, character in _ENTITIES:
        readable = readable.replace(entity, character)
    return readable


def mentioned_users(text: str) -> list[str]:
    targets = (token.partition("|")[0] for token in _TOKEN.findall(text))
    return [target[1:] for target in targets if target.startswith("@")]


def message_source(text: str, attachments: object, blocks: object) -> str:
    """Everything that a message says, still in Slack's markup.

    An alert of Alertmanager has its words in attachments, other apps have theirs in blocks, beside
    a short `text` for notifications. What people type is in `text` and again as rich text, which
    counts only where `text` is empty. Entries that are not in Slack's documented shape are left out.
    """
    is_empty = _INVISIBLE.fullmatch(text) is not None
    parts = [] if is_empty else [text]
    for block in _entries(blocks):
        if is_empty or block.get("type") != "rich_text":
            parts += (part for part in _block_texts(block) if part not in text)
    for attachment in _entries(attachments):
        parts += _attachment_texts(attachment)
    return "\n".join(dict.fromkeys(part.strip() for part in parts[:_MOST_PARTS] if part.strip()))


def _readable(token: str, mention: Callable[[str], str], unnamed_channel: str) -> str:
    target, _, label = token.partition("|")
    match target[:1]:
        case "@":
            return mention(target[1:])
        case "#":
            return f"#{label}" if label else unnamed_channel or f"#{target[1:]}"
        case "!":
            date = _DATE.match(target, 1)
            return label or (_time(int(date[1])) if date else f"@{target[1:].partition('^')[0]}")
        case _:
            return _link(target, label)


def _time(seconds: int) -> str:
    """Of a date that has no words for those who cannot show it."""
    try:
        return f"{_1970 + timedelta(seconds=seconds):%Y-%m-%d %H:%M} UTC"
    except OverflowError:
        return ""


def _emoji(code: re.Match[str]) -> str:
    name = code["name"]
    if name in _EMOJI_NAMES:
        return _EMOJI_NAMES[name]
    try:
        found = unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        return code[0]
    return found if unicodedata.category(found) == "So" else code[0]


def _link(target: str, label: str) -> str:
    """The typed text if Slack made the link; else the label with its address."""
    scheme = _LINKED_BY_SLACK.match(target)
    address = target[scheme.end() :] if scheme else target
    if not label:
        return target if "://" in target else address
    if target.startswith("tel:"):
        return label
    if label.rstrip("/").lower() in (target.rstrip("/").lower(), address.rstrip("/").lower()):
        return label
    return f"{label} ({target})"


def _attachment_texts(attachment: Mapping[str, object]) -> list[str]:
    fields = [
        f"{field.get('title') or ''}: {field['value']}"
        for field in _entries(attachment.get("fields"))
        if isinstance(field.get("value"), str | int | float)
    ]
    found = [
        *_strings(attachment, "pretext", "title", "text"),
        *fields,
        *(text for block in _entries(attachment.get("blocks")) for text in _block_texts(block)),
    ]
    return found or _forwarded(attachment) or _strings(attachment, "fallback")


def _forwarded(attachment: Mapping[str, object]) -> list[str]:
    """The words of a forwarded message that has them in blocks alone."""
    messages = [each.get("message") for each in _entries(attachment.get("message_blocks"))]
    blocks = [block for one in _entries(messages) for block in _entries(one.get("blocks"))]
    return [text for block in blocks for text in _block_texts(block)]


def _block_texts(block: Mapping[str, object]) -> Iterator[str]:
    """Its texts in their order; a paragraph of rich text is one text."""
    match block.get("type"):
        case "rich_text":
            yield from (_rich_text(part) for part in _entries(block.get("elements")))
        case "table" | "data_table":
            yield from [*_strings(block, "caption"), *_table_rows(block.get("rows"))]
        case _:
            yield from _worded(block)
            for element in _entries(block.get("elements")):
                is_card = element.get("type") == "card"  # of a carousel
                yield from _worded(element) if is_card else _strings(element, "text")


def _worded(block: Mapping[str, object]) -> Iterator[str]:
    fields = _entries(block.get("fields"))
    for part in (block, *_entries([block.get(name) for name in _WORDED]), *fields):
        yield from _strings(part, "text")
    yield from _strings(block, "alt_text")


def _table_rows(rows: object) -> Iterator[str]:
    for row in rows if isinstance(rows, list | tuple) else ():
        yield " | ".join(_rich_text(cell) for cell in _entries(row))


def _rich_text(element: Mapping[str, object]) -> str:
    match element.get("type"):
        case "user":
            return f"<@{element.get('user_id') or ''}>"
        case "channel":
            return f"<#{element.get('channel_id') or ''}>"
        case "emoji":
            return f":{element.get('name') or ''}:"
        case "usergroup":
            return f"<!subteam^{element.get('usergroup_id') or ''}>"
        case "broadcast":
            return f"<!{element.get('range') or ''}>"
        case "raw_number":
            value = element.get("value")
            return f"{value}" if isinstance(value, int | float) else ""
        case "date":
            words = _as_markup("".join(_strings(element, "fallback")))
            return words or f"<!date^{element.get('timestamp')}>"
        case "link":
            url, label = (_as_markup("".join(_strings(element, key))) for key in ("url", "text"))
            return f"<{url.replace('|', '%7C')}|{label}>" if url and label else label or f"<{url}>"
        case kind:
            inner = [_rich_text(each) for each in _entries(element.get("elements"))]
            between = "\n" if kind == "rich_text_list" else ""
            return between.join([*map(_as_markup, _strings(element, "text")), *inner])


def _as_markup(text: str) -> str:
    """Rich text holds plain text, in which Slack escapes nothing."""
    for entity, character in reversed(_ENTITIES):
        text = text.replace(character, entity)
    return text


def _entries(value: object) -> Iterator[Mapping[str, object]]:
    for each in value if isinstance(value, list | tuple) else ():
        if isinstance(each, Mapping):
            yield each


def _strings(of: Mapping[str, object], *names: str) -> list[str]:
    return [value for name in names if isinstance(value := of.get(name), str) and value.strip()]
