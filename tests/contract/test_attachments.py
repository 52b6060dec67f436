"""Attached files read from Slack: from the local workspace, and from a server that misbehaves."""

import asyncio
import base64
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from adapters.llm.messages import Picture
from bot.demo.workspace.files import Upload
from bot.demo.workspace.identity import AppIdentity
from bot.demo.workspace.seeds import CHECKOUT, RESPONDER, STRANGER
from bot.demo.workspace.state import Setup, Workspace
from bot.slack.api.files import NotText, SlackFiles, text_of
from bot.slack.api.web_api import create_api
from tests.fakes.capabilities import call_context
from tests.fixtures_workspace import served
from tools.attached import MAX_BYTES, AttachedFile, FileText
from tools.errors import CapabilityUnavailable, InvalidArguments, ToolError, UpstreamFailed
from tools.redactor import RedactionFailed

TOKEN = "xoxb-the-bots-own"
LINE = "10:00:01 ERROR pool exhausted\n"


def masked(text: str) -> str:
    return text.replace("hunter2", "[secret]")


@asynccontextmanager
async def reader(
    base: str, token: str = TOKEN, redact: Callable[[str], str] = masked, timeout_s: float = 5.0
) -> AsyncIterator[SlackFiles]:
    async with aiohttp.ClientSession() as session:
        api = create_api(token, f"{base}/api/", session)
        yield SlackFiles(api, session, token, f"{base}/api/", redact, timeout_s=timeout_s)


async def uploaded(workspace: Workspace, upload: Upload, user: str = RESPONDER) -> AttachedFile:
    ts = await workspace.say(user, CHECKOUT, "look", files=[upload])
    message = workspace.message(CHECKOUT, ts)
    assert message is not None
    return AttachedFile(str(message.files[0]["id"]), upload.name)


async def read(workspace: Workspace, upload: Upload, user: str = RESPONDER) -> FileText:
    file = await uploaded(workspace, upload, user)
    async with reader(workspace.origin, workspace.bot_token) as files:
        return await files.read(file, call_context())


@pytest.fixture
async def workspace() -> AsyncIterator[Workspace]:
    async with served() as workspace:
        yield workspace


@pytest.mark.parametrize("user", [RESPONDER, STRANGER])
async def test_a_text_is_read_whole_and_masked(workspace: Workspace, user: str) -> None:
    found = await read(workspace, Upload("app.log", f"{LINE}password hunter2".encode()), user)

    assert found == FileText(f"{LINE}password [secret]", "text/plain", 46)


@pytest.mark.parametrize(
    ("content", "text", "note"),
    [
        ("héllo".encode("utf-16"), "héllo", "read as UTF-16"),
        ("hello world".encode("utf-16-le"), "hello world", "read as UTF-16"),
        ("hello world".encode("utf-16-be"), "hello world", "read as UTF-16"),
        ("hello".encode("utf-32"), "hello", "read as UTF-32"),
        (b"\xef\xbb\xbfhello", "hello", ""),
        ("Zürich läuft".encode("latin-1"), "Zürich läuft", "not UTF-8, so read as Latin-1"),
        (b"broken \xed\xa0\x80 here", "broken í\xa0\x80 here", "not UTF-8, so read as Latin-1"),
    ],
    ids=["utf-16", "utf-16-le", "utf-16-be", "utf-32", "bom", "latin-1", "a lone surrogate"],
)
async def test_a_text_in_another_encoding_is_read_with_a_note(
    workspace: Workspace, content: bytes, text: str, note: str
) -> None:
    found = await read(workspace, Upload("notes.txt", content))

    assert (found.text, found.note) == (text, note)


@pytest.mark.parametrize(
    ("upload", "why"),
    [
        (Upload("logs.txt", b"PK\x03\x04" + bytes(99)), "it is an archive"),
        (Upload("logs.txt", gzip.compress(b"x" * 999)), "it is a compressed file"),
        (Upload("run.log", b"abc\x00\x01\x02" * 99), "it is not text"),
        (Upload("run.log", bytes(range(128, 256)) + bytes(range(1, 9)) * 9), "it is not text"),
        (Upload("run.log", b"\xff\xfe\x00\xd8"), "do not match its byte order"),
        (Upload("empty.log", b" \n"), "it is empty"),
        (Upload("report.pdf", b"%PDF-1.7"), "it is a PDF"),
        (Upload("shot.png", b"\x89PNG"), "it is an image"),
        (Upload("shot.log", b"\x89PNG\r\n"), "it is an image"),
        (Upload("page.html", b"<html>"), "it is a web page"),
        (Upload("a.log", b"x" * (MAX_BYTES + 1)), "it is larger than 1 MB"),
        (Upload("plan", b"x", "text/plain", "external"), "it is outside Slack"),
        (Upload("canvas", b"x", "application/vnd.slack-docs", "quip"), "it is a canvas"),
    ],
    ids=lambda each: each.name if isinstance(each, Upload) else "",
)
async def test_a_binary_file_is_refused_with_its_reason(
    workspace: Workspace, upload: Upload, why: str
) -> None:
    with pytest.raises(InvalidArguments, match=why):
        await read(workspace, upload)


async def test_a_large_file_is_refused_before_the_download(workspace: Workspace) -> None:
    with pytest.raises(InvalidArguments, match="larger than 1 MB"):
        await read(workspace, Upload("a.log", b"x" * (3 * MAX_BYTES)))

    assert workspace.files.fetched == []


async def test_a_deleted_file_is_reported_as_deleted(workspace: Workspace) -> None:
    file = await uploaded(workspace, Upload("app.log", b"x"))
    workspace.files.delete(file.id)
    async with reader(workspace.origin, workspace.bot_token) as files:
        with pytest.raises(InvalidArguments, match="it was deleted"):
            await files.read(file, call_context())
        with pytest.raises(InvalidArguments, match="deleted, or is not shared"):
            await files.read(AttachedFile("F0NOBODYS1"), call_context())


async def test_a_missing_scope_is_named() -> None:
    app = AppIdentity()
    bare = replace(app, scopes=app.scopes - {"files:read"})
    async with served(Setup(app=bare)) as workspace:
        with pytest.raises(InvalidArguments, match="has no scope files:read"):
            await read(workspace, Upload("app.log", b"x"))


async def test_a_redirect_is_not_followed(workspace: Workspace) -> None:
    file = await uploaded(workspace, Upload("app.log", b"x"))
    workspace.files.moved[file.id] = f"{workspace.origin}/person/workspace"
    async with reader(workspace.origin, workspace.bot_token) as files:
        with pytest.raises(InvalidArguments, match="asked Kortex to sign in"):
            await files.read(file, call_context())


async def test_a_file_that_cannot_be_masked_is_not_read(workspace: Workspace) -> None:
    def fails(_text: str) -> str:
        raise RedactionFailed("broken")

    file = await uploaded(workspace, Upload("app.log", b"hunter2"))
    async with reader(workspace.origin, workspace.bot_token, fails) as files:
        with pytest.raises(CapabilityUnavailable, match="could not be masked") as failed:
            await files.read(file, call_context())
    assert "hunter2" not in failed.value.message


PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x03\x00\x00\x00\x02\x08\x02"


async def pictured(workspace: Workspace, upload: Upload) -> Picture:
    file = await uploaded(workspace, upload)
    async with reader(workspace.origin, workspace.bot_token) as files:
        return await files.picture(file)


async def test_an_images_type_comes_from_its_bytes(workspace: Workspace) -> None:
    found = await pictured(workspace, Upload("shot.jpg", PNG))

    assert (found.media, found.why_not) == ("image/png", "")
    assert base64.b64decode(found.data) == PNG


@pytest.mark.parametrize(
    ("upload", "why"),
    [
        (Upload("shot.png", b"<script>"), "it is not a PNG, JPEG, GIF or WebP"),
        (Upload("shot.png", PNG + bytes(3_500_000)), "it is larger than 3.5 MB"),
        (Upload("shot.txt", PNG), "it is not an image"),
        (Upload("shot.png", PNG, mode="external"), "it is outside Slack"),
    ],
    ids=["script", "large", "text", "elsewhere"],
)
async def test_an_image_that_cannot_be_shown_says_why(
    workspace: Workspace, upload: Upload, why: str
) -> None:
    found = await pictured(workspace, upload)

    assert found.data == ""
    assert why in found.why_not


Serve = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class OddSlack:
    """Describes one file, at an address of the test's choice, and serves it as the test says."""

    serve: Serve
    file: dict[str, JsonValue] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)
    status: int = 200

    async def info(self, request: web.Request) -> web.Response:
        described = {"mimetype": "text/plain", "mode": "hosted", "size": 4} | self.file
        described.setdefault("url_private_download", f"http://{request.host}/f")
        headers = {"Retry-After": "7"} if self.status == 429 else {}
        answer = {"ok": self.status == 200, "file": described}
        return web.json_response(answer, status=self.status, headers=headers)

    async def download(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append(request.headers.get("authorization", ""))
        return await self.serve(request)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_get("/api/files.info", self.info)
        app.router.add_get("/f", self.download)
        async with TestServer(app) as server:
            yield str(server.make_url("")).rstrip("/")


async def failure(odd: OddSlack, timeout_s: float = 5.0) -> ToolError:
    """What reading it raises."""
    async with odd.running() as base, reader(base, timeout_s=timeout_s) as files:
        with pytest.raises(ToolError) as failed:
            await files.read(AttachedFile("F1", "app.log"), call_context())
    return failed.value


async def plain(_request: web.Request) -> web.Response:
    return web.Response(text="text")


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/f",
        "http://files.slack.com/f",
        "https://files.slack.com.evil.example/f",
        "https://files.slack.com@evil.example/f",
        "https://files.slack.com:8443/f",
        "file:///etc/passwd",
        "//files.slack.com/f",
        "http://[::1",
        "",
    ],
)
async def test_the_token_goes_to_no_other_host(address: str) -> None:
    told = await failure(OddSlack(plain, {"url_private_download": address, "url_private": address}))

    assert isinstance(told, InvalidArguments)
    assert told.message == "it is outside Slack, where Kortex does not read"


async def test_another_port_of_the_same_host_is_another_host() -> None:
    thief = OddSlack(plain)
    async with thief.running() as elsewhere:
        await failure(OddSlack(plain, {"url_private_download": f"{elsewhere}/f"}))

    assert thief.tokens == []


async def test_a_sign_in_page_is_not_the_file() -> None:
    async def sign_in(_request: web.Request) -> web.Response:
        return web.Response(text="<html>Sign in</html>", content_type="text/html")

    told = await failure(OddSlack(sign_in))

    assert "sign-in page" in told.message
    assert "files:read" in told.message


@pytest.mark.parametrize(("status", "words"), [(429, "limits how often"), (503, "HTTP 503")])
async def test_a_delayed_download_is_reported(status: int, words: str) -> None:
    async def refuse(_request: web.Request) -> web.Response:
        return web.Response(status=status)

    told = await failure(OddSlack(refuse))

    assert isinstance(told, UpstreamFailed)
    assert words in told.message


async def test_a_delayed_description_is_reported() -> None:
    assert "limits how often" in (await failure(OddSlack(plain, status=429))).message
    assert "did not say where" in (await failure(OddSlack(plain, status=500))).message


async def test_a_trickling_download_is_abandoned() -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"x")
        await asyncio.Event().wait()
        return answer

    told = await failure(OddSlack(drip), timeout_s=0.05)

    assert told.message == "Slack took too long to send it"


@pytest.mark.parametrize("encoding", ["", "gzip"])
async def test_a_file_larger_than_announced_is_cut_off(encoding: str) -> None:
    async def flood(_request: web.Request) -> web.StreamResponse:
        body = b"x" * (MAX_BYTES + 65_536)
        headers = {"content-encoding": encoding} if encoding else {}
        return web.Response(body=gzip.compress(body) if encoding else body, headers=headers)

    assert (await failure(OddSlack(flood))).message == "it is larger than 1 MB"


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])
def test_a_lone_byte_order_mark_is_an_empty_file(mark: bytes) -> None:
    with pytest.raises(NotText, match="it is empty"):
        text_of(mark)


@given(st.binary(max_size=200))
def test_any_bytes_are_text_or_refused(content: bytes) -> None:
    with suppress(NotText):
        text, note = text_of(content)
        assert text.strip("\x00 \t\r\n\ufeff") or note
