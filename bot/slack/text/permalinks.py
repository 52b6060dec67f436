"""Links to messages of our own workspace, made of its address and of ids alone."""

import re
from typing import Final

from bot.domain.ids import MessageTs, Place

_TS: Final = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}", re.ASCII)
_CHANNEL: Final = re.compile(r"[A-Z0-9]{2,30}", re.ASCII)

# Six digits after the point: a message's ts without it.
_LINK: Final = re.compile(
    r"https?://[^/\s]+/archives/([A-Z0-9]{2,30})/p([0-9]{7,18})(?:\?(?:.*&)?thread_ts=([0-9]+\.[0-9]+).*|\?.*)?",
    re.ASCII,
)


def permalink(site: str, place: Place, ts: MessageTs) -> str:
    """As chat.getPermalink gives it; empty where there is no site, or what should be an id is none."""
    if not (site and _TS.fullmatch(ts) and _CHANNEL.fullmatch(place.channel)):
        return ""
    root = place.thread_ts
    is_reply = root and root != ts and _TS.fullmatch(root)
    within = f"?thread_ts={root}&cid={place.channel}" if is_reply else ""
    return f"{site.rstrip('/')}/archives/{place.channel}/p{ts.replace('.', '')}{within}"


def thread_of(link: str) -> tuple[str, str] | None:
    """Channel and root of the thread that a message's link leads to; None for what is no such link."""
    found = _LINK.fullmatch(link.strip())
    if found is None:
        return None
    channel, digits, root = found.groups()
    return channel, root or f"{digits[:-6]}.{digits[-6:]}"
