"""The status of threads with the app, and Slack's own Stop button.

https://docs.slack.dev/ai/agent-sessions: a status stays until the app changes it, or ends a stream.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bot.demo.workspace.feed import Change, Feed
from bot.demo.workspace.json_access import JsonObject


@dataclass(frozen=True, slots=True)
class Session:
    """One thread. `line` is the status text of the older methods."""

    status: str = "active"
    title: str = ""
    line: str = ""


@dataclass(slots=True)
class Sessions:
    """All of them, by channel and thread, and the prompts offered in direct messages."""

    feed: Feed
    prompts: dict[str, tuple[JsonObject, ...]] = field(default_factory=dict)
    told: list[tuple[str, str]] = field(default_factory=list)  # every status in order, by thread
    _known: dict[tuple[str, str], Session] = field(default_factory=dict)

    def of(self, channel: str, thread_ts: str) -> Session:
        return self._known.get((channel, thread_ts), Session())

    def update(
        self,
        channel: str,
        thread_ts: str,
        *,
        status: str = "",
        title: str = "",
        line: str | None = None,
    ) -> Session:
        before = self.of(channel, thread_ts)
        after = replace(
            before,
            status=status or before.status,
            title=title or before.title,
            line=before.line if line is None else line,
        )
        self._known[channel, thread_ts] = after
        if status:
            self.told.append((thread_ts, status))
        body: JsonObject = {"thread_ts": thread_ts, "status": after.status, "title": after.title}
        self.feed.publish(Change("session", body | {"line": after.line}, channel=channel))
        return after

    def listed(self, may_see: Callable[[str], bool]) -> list[JsonObject]:
        """The threads with a running status or a title, for a page that opens later."""
        return [
            {
                "channel": channel,
                "thread_ts": ts,
                "status": s.status,
                "title": s.title,
                "line": s.line,
            }
            for (channel, ts), s in self._known.items()
            if (s.status == "processing" or s.title) and may_see(channel)
        ]
