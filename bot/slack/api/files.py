"""Attached texts and images, read from Slack with the bot's token.

The token is sent only to Slack's file hosts and to the configured API. Redirects are refused,
because Slack redirects to its sign-in page. Each read describes the file again, so a deleted file
is not read. Nothing is cached.
"""

import asyncio
import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import structlog
from pydantic import ValidationError

from adapters.llm.messages import Picture
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.calls import ApiObject, SlackCalls
from bot.slack.api.web_api import RateLimited, Refused
from tools.attached import MAX_BYTES, AttachedFile, FileText
from tools.capabilities import CallContext
from tools.errors import CapabilityUnavailable, InvalidArguments, ToolError, UpstreamFailed
from tools.redactor import RedactionFailed

# By how the bytes begin: Unicode's marks first, the longer before the shorter.
_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig", ""),
    (b"\xff\xfe\x00\x00", "utf-32", "read as UTF-32"),
    (b"\x00\x00\xfe\xff", "utf-32", "read as UTF-32"),
    (b"\xff\xfe", "utf-16", "read as UTF-16"),
    (b"\xfe\xff", "utf-16", "read as UTF-16"),
)
# https://en.wikipedia.org/wiki/List_of_file_signatures, of what people attach under a text's name.
_BINARY: Final = (
    (b"PK\x03\x04", "it is an archive, despite its name"),
    (b"\x1f\x8b", "it is a compressed file, despite its name"),
    (b"\x28\xb5\x2f\xfd", "it is a compressed file, despite its name"),
    (b"%PDF-", "it is a PDF, not text"),
    (b"\x7fELF", "it is a program, not text"),
    (b"\x89PNG", "it is an image"),
    (b"\xff\xd8\xff", "it is an image"),
    (b"GIF8", "it is an image"),
)
_EMPTY: Final = "it is empty"
_KEPT: Final = frozenset("\t\n\r\x0b\x0c\x1b")
_MOST_CONTROLS: Final = 0.01  # of the characters of a text in an old encoding; colour codes aside


class NotText(ValueError):
    """The bytes are not text; the message says why."""


def text_of(content: bytes) -> tuple[str, str]:
    """The text and a note on its encoding, empty for UTF-8. Raises NotText."""
    for begins, why in _BINARY:
        if content.startswith(begins):
            raise NotText(why)
    for mark, encoding, note in _MARKS:
        if content.startswith(mark):
            text = _strict(content, encoding)
            if not text.strip("\x00 \t\r\n\ufeff"):
                raise NotText(_EMPTY)
            return text, note
    if not content.strip(b"\x00 \t\r\n"):
        raise NotText(_EMPTY)
    if b"\x00" in content:
        return _unmarked(content)
    try:
        return content.decode("utf-8"), ""
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    if sum(each < " " and each not in _KEPT for each in text) > _MOST_CONTROLS * len(text):
        raise NotText("it is not text, despite its name")
    return text, "not UTF-8, so read as Latin-1"


def _strict(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise NotText("it is not text: its bytes do not match its byte order mark") from None


def _unmarked(content: bytes) -> tuple[str, str]:
    """UTF-16 without a byte order mark: ASCII text has a zero in every second byte."""
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = content[first::2].count(0), content[1 - first :: 2].count(0)
        if zeros > len(content) * 0.4 and not others and len(content) % 2 == 0:
            return _strict(content, encoding), "read as UTF-16"
    raise NotText("it is not text, despite its name")


MOST_BYTES: Final = 3_500_000  # Bedrock takes 3.75 MB, Anthropic 5, others more
MOST_PIXELS: Final = 8_000  # a side; Anthropic and Bedrock refuse more
# Markers of JPEG (ITU T.81, table B.1): frames of any coding but the tables numbered among them,
# what has no length, and where the picture's own data begin or end.
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE: Final = frozenset({0x01, *range(0xD0, 0xD9)})
_DATA: Final = frozenset({0xD9, 0xDA})
_MOST_SEGMENTS: Final = 1_000  # before the frame; a colour profile is at most 255 of them


class NotShown(ValueError):
    """No model can see the image; the message says why."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`media` as in a content type."""

    media: str
    width: int
    height: int


def kind_of(content: bytes) -> Kind:
    """Media type and size. Raises NotShown for other formats, broken and too large images."""
    kind = _png(content) or _gif(content) or _webp(content) or _jpeg(content)
    if kind is None:
        raise NotShown("it is not a PNG, JPEG, GIF or WebP, despite its name")
    if not (0 < kind.width <= MOST_PIXELS and 0 < kind.height <= MOST_PIXELS):
        raise NotShown(
            f"it is {kind.width} x {kind.height} pixels; the limit is {MOST_PIXELS} a side"
        )
    return kind


def _png(content: bytes) -> Kind | None:
    if not content.startswith(b"\x89PNG\r\n\x1a\n") or content[12:16] != b"IHDR":
        return None
    return Kind("image/png", _big(content[16:20]), _big(content[20:24]))


def _gif(content: bytes) -> Kind | None:
    if not content.startswith((b"GIF87a", b"GIF89a")):
        return None
    return Kind("image/gif", _little(content[6:8]), _little(content[8:10]))


def _webp(content: bytes) -> Kind | None:
    if content[:4] != b"RIFF" or content[8:12] != b"WEBP":
        return None
    match content[12:16]:
        case b"VP8X":
            width, height = _little(content[24:27]) + 1, _little(content[27:30]) + 1
        case b"VP8L":
            bits = _little(content[21:25])
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            width, height = _little(content[26:28]) & 0x3FFF, _little(content[28:30]) & 0x3FFF
    return Kind("image/webp", width, height)


def _jpeg(content: bytes) -> Kind | None:
    """Reads segment by segment, because a segment may hold a thumbnail of another size."""
    if not content.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    for _ in range(_MOST_SEGMENTS):
        if content[at : at + 1] != b"\xff" or at + 4 > len(content):
            return None
        marker = content[at + 1]
        if marker in _FRAMES:
            height, width = content[at + 5 : at + 7], content[at + 7 : at + 9]
            return Kind("image/jpeg", _big(width), _big(height)) if len(width) == 2 else None
        if marker in _DATA:
            return None
        if marker == 0xFF:  # a byte that fills
            at += 1
        elif marker in _BARE:
            at += 2
        else:
            at += 2 + _big(content[at + 2 : at + 4])
    return None


def _big(some: bytes) -> int:
    return int.from_bytes(some, "big")


def _little(some: bytes) -> int:
    return int.from_bytes(some, "little")


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
