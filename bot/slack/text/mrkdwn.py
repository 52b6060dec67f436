"""Text from models, tools and names made safe for Slack: cleaned, escaped, its mentions defused.

`clean` is for what people read, `visible` for what they decide on (nothing invisible stays so).
Links and code of whole answers are `bot.slack.text.markdown`'s.
"""

import re

# CSI, OSC (also OSC 8 links), DCS/SOS/PM/APC strings, other two-byte escapes, and 8-bit CSI.
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_NEWLINE = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
# Controls, soft hyphen, zero-width characters that hide a token, tag characters.
_DROPPED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u180e\u200b\u2060-\u2064\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]")
# Everything that shows as nothing, or as something else than it is.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
BROADCAST = re.compile(r"@(?=channel|here|everyone|group)", re.IGNORECASE)
_ESCAPED_CHAR = re.compile(r"&(?:amp|lt|gt);|.", re.DOTALL)
ZERO_WIDTH_SPACE = "\u200b"
# Replaces a backtick that must not open or close code.
INERT_BACKTICK = "\u02cb"


def _codepoint(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def clean(text: str) -> str:
    """Without terminal sequences, control characters and lone surrogates; bidi shown as `\\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    text = _DROPPED.sub("", _NEWLINE.sub("\n", text))
    if text.isascii():
        return text
    return _BIDI.sub(_codepoint, _SURROGATE.sub("\ufffd", text))


def visible(text: str) -> str:
    """Every invisible, control or direction-changing character written out as its escape."""
    return INVISIBLE.sub(_codepoint, text)


def escape(text: str) -> str:
    """`& < >` as entities and broadcast words defused: no mention, no link, no date survives.

    https://docs.slack.dev/messaging/formatting-message-text: these three characters are the only
    way into Slack's `<…>` tokens. Bare `@channel` is inert unless a caller asks Slack to find
    names; the zero-width space keeps it so.
    """
    text = BROADCAST.sub("@" + ZERO_WIDTH_SPACE, text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_within(text: str, max_chars: int) -> str:
    """Escaped, at most `max_chars` long afterwards, cut between whole characters with an `…`."""
    escaped = escape(text)
    if len(escaped) <= max_chars:
        return escaped
    kept: list[str] = []
    room = max_chars - 1
    for match in _ESCAPED_CHAR.finditer(escaped):
        room -= len(match.group())
        if room < 0:
            break
        kept.append(match.group())
    return "".join(kept) + "…"


def inline(text: str, max_chars: int = 200) -> str:
    """A name, a summary, a reason: one line, cleaned, escaped, with no code marks of its own."""
    flat = " ".join(clean(text).split()).replace("`", INERT_BACKTICK)
    return escape_within(flat, max_chars)


def plain(text: str, max_chars: int) -> str:
    """For `plain_text` objects, which Slack neither parses nor unescapes: one line, cut.

    Angle brackets are written as their look-alikes, so that no reader of the payload finds a token.
    """
    flat = " ".join(clean(text).split())
    flat = BROADCAST.sub("@" + ZERO_WIDTH_SPACE, flat).replace("<", "‹").replace(">", "›")
    return flat if len(flat) <= max_chars else flat[: max_chars - 1] + "…"
