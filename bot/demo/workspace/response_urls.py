"""What arrives at a response URL: answers to an interaction without a token."""

from dataclasses import dataclass, replace

import orjson
from aiohttp import web

from bot.demo.workspace import content
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.interaction_handles import ResponseUrl
from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.posting import with_block_ids
from bot.demo.workspace.state import Workspace

_KNOWN = frozenset(
    {
        "text", "blocks", "attachments", "response_type", "replace_original", "delete_original",
        "thread_ts", "metadata", "unfurl_links", "unfurl_media",
    }
)  # fmt: skip


@dataclass(slots=True)
class ResponseUrls:
    """Answers `/actions/<key>`: "ok", or an HTTP error with a plain word, as Slack does."""

    workspace: Workspace

    async def handle(self, request: web.Request) -> web.Response:
        try:
            body = orjson.loads(await request.read())
        except orjson.JSONDecodeError:
            return web.Response(status=400, text="invalid_payload")
        if not isinstance(body, dict) or set(body) - _KNOWN:
            return web.Response(status=400, text="invalid_payload")
        handle = self.workspace.handles.use_response_url(request.match_info["key"])
        if handle is None:
            return web.Response(status=404, text="used_url")
        try:
            self._apply(handle, body)
        except SlackRefused as refused:
            return web.Response(status=400, text=refused.code)
        return web.json_response({"ok": True})

    def _apply(self, handle: ResponseUrl, body: JsonObject) -> None:
        posting = self.workspace.posting
        if body.get("delete_original") is True:
            posting.unwhisper(handle.channel, handle.message_ts)
            return
        if body.get("replace_original") is True and self._replace(
            handle, content.read_answer(body)
        ):
            return
        posting.show_answer(body, handle.user, handle.channel, handle.thread_ts)

    def _replace(self, handle: ResponseUrl, said: content.Content) -> bool:
        posting = self.workspace.posting
        shown = self.workspace.timeline.ephemeral(handle.channel, handle.message_ts)
        before = shown.message if shown else None
        if before is None:
            before = self.workspace.timeline.get(handle.channel, handle.message_ts)
        if before is None:
            return False
        after = replace(
            before,
            text=said.text or content.NO_PREVIEW,
            blocks=with_block_ids(said.blocks or ()),
        )
        if shown:
            posting.whisper(replace(shown, message=after))
        else:
            posting.edit(before, after)
        return True
