"""Whether a workspace shows charts: Slack brings them to one after the other.

That is learned from the first message that is refused for them, which is sent again without; from
then on they are left out at once. The answer's text says the same without them.
"""

from collections.abc import Iterable

import structlog

from bot.slack.api.web_api import Refused
from bot.slack.text.blocks import Block

_log = structlog.stdlib.get_logger(__name__)

KINDS = frozenset({"data_visualization"})
# https://docs.slack.dev/reference/methods/chat.postMessage: what a rejected layout is called.
LAYOUT_REFUSED = frozenset(
    {"block_mismatch", "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"}
)
_UNSUPPORTED = "unsupported type"


class Pictures:
    """One workspace's, shared by all that sends there."""

    def __init__(self) -> None:
        self._unknown: set[str] = set()

    @property
    def has_charts(self) -> bool:
        """As far as is known."""
        return "data_visualization" not in self._unknown

    def shown(self, blocks: Iterable[Block]) -> tuple[Block, ...]:
        """Those of the blocks that the workspace takes, as far as is known."""
        return tuple(block for block in blocks if block.get("type") not in self._unknown)

    def without(self, blocks: Iterable[Block], refused: Refused) -> tuple[Block, ...] | None:
        """What to send in place of blocks that were refused; None where no picture was among them.

        Where Slack says that it does not know a kind, or nothing at all, the workspace has not got
        it. Where it says what is wrong with one, only this message goes without.
        """
        if refused.code not in LAYOUT_REFUSED:
            return None
        sent = self.shown(blocks)
        held = {str(block.get("type")) for block in sent} & KINDS
        if not held:
            return None
        blamed = {kind for kind in held if any(_blames(said, kind) for said in refused.messages)}
        if refused.code == "invalid_blocks" and not refused.messages:
            blamed = held
        if blamed:
            self._unknown |= blamed
            _log.warning("slack.pictures.refused", kinds=sorted(blamed), shown_by="text")
        else:
            _log.warning("slack.picture.refused", said=refused.messages[:3], error=str(refused))
        return tuple(block for block in sent if block.get("type") not in (blamed or held))


def _blames(said: str, kind: str) -> bool:
    return _UNSUPPORTED in said and kind in said
