"""Who asks, as headers for the other side's own audit: ids only, as Slack gives them."""

from tools.capabilities import CallContext


def identity_headers(call: CallContext) -> dict[str, str]:
    """`X-Kortex-Actor`, `-Team`, `-Session` and `-Call`."""
    headers = {
        "X-Kortex-Actor": call.actor,
        "X-Kortex-Team": call.team,
        "X-Kortex-Session": call.session_id,
        "X-Kortex-Call": call.tool_call_id,
    }
    return {name: _visible(value) for name, value in headers.items()}


def _visible(value: str) -> str:
    """A header is visible ASCII; an id that is not is made so, never split into two headers."""
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in value)
