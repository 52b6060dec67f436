"""Attached texts and images, read from Slack with the bot's token.

The token is sent only to Slack's file hosts and to the configured API. Redirects are refused,
because Slack redirects to its sign-in page. Each read describes the file again, so a deleted file
is not read. Nothing is cached.
"""

import asyncio
import base64
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import structlog
from pydantic import ValidationError

from adapters.llm.messages import Picture
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import ApiObject, SlackCalls
from bot.slack.api.file_content import MOST_BYTES, NotShown, NotText, kind_of, text_of
from bot.slack.api.web_api import RateLimited, Refused
from tools.attached import MAX_BYTES, AttachedFile, FileText
from tools.capabilities import CallContext
from tools.errors import CapabilityUnavailable, InvalidArguments, ToolError, UpstreamFailed
from tools.redactor import RedactionFailed

_log = structlog.stdlib.get_logger(__name__)
# https://docs.slack.dev/reference/objects/file-object: url_private_download; the second is GovSlack's.
_FILE_HOSTS: Final = frozenset({"https://files.slack.com", "https://files.slack-gov.com"})
DOWNLOAD_S: Final = 8.0  # 1 MiB; the call as a whole has 10 s
_CHUNK: Final = 64 * 1024
NO_SCOPE: Final = (
    "the Slack app has no scope files:read; an admin must add it and reinstall the app"
)
_REFUSALS: Final[Mapping[str, str]] = {
    "missing_scope": NO_SCOPE,
    "file_not_found": "it was deleted, or is not shared with Kortex",
    "file_deleted": "it was deleted",
    "not_visible": "Slack does not let Kortex see it",
    "access_denied": "Slack does not let Kortex see it",
    "no_permission": "Slack does not let Kortex see it",
}
_MODES: Final[Mapping[str, str]] = {
    "tombstone": "it was deleted",
    "hidden_by_limit": "the workspace's plan hides it",
    "external": "it is outside Slack, and only its link was shared",
    "space": "it is a canvas, not a text file",
    "quip": "it is a canvas, not a text file",
    "docs": "it is a Slack post, not a text file",
}
_NOT_TEXT: Final[Mapping[str, str]] = {
    "image/": "it is an image",
    "audio/": "it is a recording",
    "video/": "it is a recording",
    "application/pdf": "it is a PDF, not text",
    "application/zip": "it is an archive, not text",
}


class _File(ApiObject):
    mode: str = ""
    mimetype: str = ""
    size: int = 0
    is_external: bool = False
    url_private_download: str = ""
    url_private: str = ""


class _Answer(ApiObject):
    file: _File


class SlackFiles:
    """`tools.core.read_attachment.Attachments` over the Web API. `redact` may raise RedactionFailed."""

    def __init__(
        self,
        api: SlackCalls,
        session: aiohttp.ClientSession,
        token: str,
        api_base_url: str,
        redact: Callable[[str], str],
        *,
        timeout_s: float = DOWNLOAD_S,
    ) -> None:
        self._api = api
        self._session = session
        self._token = token
        self._hosts = _FILE_HOSTS | {_origin(api_base_url)}
        self._redact = redact
        self._timeout_s = timeout_s

    async def read(self, file: AttachedFile, call: CallContext) -> FileText:
        del call
        described = await self._described(file, MAX_BYTES)
        kind = next(
            (why for kind, why in _NOT_TEXT.items() if described.mimetype.startswith(kind)), ""
        )
        if kind:
            raise InvalidArguments(kind)
        content = await self._content(described, MAX_BYTES)
        try:
            # A megabyte takes a tenth of a second: not on the loop.
            return await asyncio.to_thread(self._told, content, described.mimetype)
        except NotText as error:
            raise InvalidArguments(str(error)) from None
        except RedactionFailed as error:
            raise CapabilityUnavailable(
                "its secrets could not be masked, so it is not read"
            ) from error

    async def picture(self, file: AttachedFile) -> Picture:
        """The image of a file, or why no model can see it."""
        try:
            described = await self._described(file, MOST_BYTES)
            if not described.mimetype.startswith("image/"):
                raise InvalidArguments("it is not an image, despite its type")
            content = await self._content(described, MOST_BYTES)
            return await asyncio.to_thread(_picture, file, content)
        except NotShown as error:
            return Picture(file.name, why_not=str(error))
        except ToolError as error:
            return Picture(file.name, why_not=error.message)

    def _told(self, content: bytes, mimetype: str) -> FileText:
        text, note = text_of(content)
        # Whole, before anything of it is cut: a secret that is cut in two is known no more.
        return FileText(self._redact(text), mimetype or "text", len(content), note)

    async def _described(self, file: AttachedFile, most: int) -> _File:
        try:
            answer = await self._api.call("files.info", file=file.id)
            described = _Answer.model_validate(answer).file
        except Refused as refused:
            raise InvalidArguments(
                _REFUSALS.get(refused.code, f"Slack says: {refused.code}")
            ) from None
        except RateLimited:
            raise UpstreamFailed(
                "Slack limits how often files are read; ask again in a minute", 429
            ) from None
        except (SurfaceFailed, SurfaceGone, ValidationError) as error:
            raise UpstreamFailed("Slack did not say where it is") from error
        mode = "external" if described.is_external else described.mode
        if why := _MODES.get(mode, ""):
            raise InvalidArguments(why)
        if described.size > most:
            raise InvalidArguments(_too_large(most))
        return described

    async def _content(self, described: _File, most: int) -> bytes:
        url = described.url_private_download or described.url_private
        if _origin(url) not in self._hosts:
            _log.warning("slack.file.other_host", host=_origin(url)[:100])
            raise InvalidArguments("it is outside Slack, where Kortex does not read")
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._session.get(
                    url,
                    headers={
                        "Authorization": f"Bearer {self._token}",
                        "Accept-Encoding": "identity",  # a packed megabyte may be a thousand
                    },
                    allow_redirects=False,
                    middlewares=(),  # a redirect is judged below
                ) as answer,
            ):
                _check(answer, described)
                return await _capped(answer, most)
        except TimeoutError:
            raise UpstreamFailed("Slack took too long to send it") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UpstreamFailed(f"Slack did not send it ({type(error).__name__})") from error


def _check(answer: aiohttp.ClientResponse, described: _File) -> None:
    if 300 <= answer.status < 400:
        raise InvalidArguments("Slack asked Kortex to sign in instead of sending it; " + NO_SCOPE)
    if answer.status in (403, 404, 410):
        raise InvalidArguments("it was deleted, or Slack does not let Kortex see it")
    if answer.status == 429:
        raise UpstreamFailed("Slack limits how often files are read; ask again in a minute", 429)
    if answer.status != 200:
        raise UpstreamFailed(f"Slack did not send it (HTTP {answer.status})", answer.status)
    if answer.content_type == "text/html" and described.mimetype != "text/html":
        raise InvalidArguments("Slack sent its sign-in page instead; " + NO_SCOPE)
    if described.mimetype == "text/html":
        raise InvalidArguments("it is a web page, and could be Slack's sign-in page")


def _picture(file: AttachedFile, content: bytes) -> Picture:
    kind = kind_of(content)
    return Picture(file.name, kind.media, base64.b64encode(content).decode())


async def _capped(answer: aiohttp.ClientResponse, most: int) -> bytes:
    content = bytearray()
    async for chunk in answer.content.iter_chunked(_CHUNK):
        content += chunk
        if len(content) > most:
            raise InvalidArguments(_too_large(most))
    return bytes(content)


def _too_large(most: int) -> str:
    return f"it is larger than {most / 1_000_000:.2g} MB"


def _origin(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        return ""
    return f"{parts.scheme}://{parts.hostname}{port}"
