"""What people typed, as the model should read it: Slack's escapes and link markup undone."""

import re

# https://docs.slack.dev/messaging/formatting-message-text: inside <…>, and only three escapes.
_TOKEN = re.compile(r"<([^<>]*)>")
_UNESCAPED = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))  # the ampersand last
_STOP = re.compile(r"\s*stop\s*[.!]*\s*", re.IGNORECASE)


def mentions(text: str, bot_user: str) -> bool:
    """Whether the bot itself is named."""
    return any(_names(token, bot_user) for token in _TOKEN.findall(text))


def question(text: str, bot_user: str) -> str:
    """The text without the bot's own mention; other people's mentions stay as ids."""

    def plain(found: re.Match[str]) -> str:
        token = found.group(1)
        return "" if _names(token, bot_user) else _readable(token)

    readable = _TOKEN.sub(plain, text)
    for escaped, char in _UNESCAPED:
        readable = readable.replace(escaped, char)
    return readable.strip()


def is_stop(question_text: str) -> bool:
    """Whether the whole message is the word "stop"."""
    return _STOP.fullmatch(question_text) is not None


def _names(token: str, bot_user: str) -> bool:
    return token.partition("|")[0] == f"@{bot_user}"


def _readable(token: str) -> str:
    target, _, label = token.partition("|")
    if target.startswith("@"):
        return f"<{target}>"
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label or f"@{target[1:].partition('^')[0]}"
    if not label or label in target:
        return target
    return f"{label} ({target})"
