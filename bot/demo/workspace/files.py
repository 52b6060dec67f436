"""Files that people share, and the addresses where the app's token reads them."""

from dataclasses import dataclass, field, replace

from aiohttp import web

from bot.demo.workspace.errors import CannotDoThat
from bot.demo.workspace.identity import AppIdentity, opaque
from bot.demo.workspace.json_access import CONSTANTS, JsonObject, texts_at

READ_SCOPE = "files:read"
_PRIVATE = "/files-pri/"
_BINARY = ["binary", "application/octet-stream"]
UPLOAD = "/upload/v1/"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a person drops into a message. An empty `mimetype` is guessed from the name.

    `mode` is Slack's: "hosted", "snippet", "external" (a link to another service), "space" (a canvas).
    """

    name: str
    content: bytes
    mimetype: str = ""
    mode: str = "hosted"


@dataclass(frozen=True, slots=True)
class SharedFile:
    id: str
    user: str
    team: str
    upload: Upload
    is_deleted: bool = False

    def as_slack(self, origin: str, app_team: str) -> JsonObject:
        if self.is_deleted:
            return {"id": self.id, "mode": "tombstone"}
        upload, (filetype, mimetype) = self.upload, self._kind
        path = f"{_PRIVATE}{app_team}-{self.id}"
        is_external = upload.mode == "external"
        private = f"https://drive.example/{self.id}" if is_external else origin + path
        described: JsonObject = CONSTANTS["file"] | {
            "id": self.id,
            "name": upload.name,
            "title": upload.name,
            "mimetype": upload.mimetype or mimetype,
            "filetype": filetype,
            "user": self.user,
            "user_team": self.team,
            "mode": upload.mode,
            "size": len(upload.content),
            "is_external": is_external,
            "url_private": f"{private}/{self.id}",
        }
        return (
            described
            if is_external
            else described | {"url_private_download": f"{private}/download/{self.id}"}
        )

    def as_strangers(self) -> JsonObject:
        """What an event says of a file of another workspace: ask files.info."""
        return {"id": self.id, "mode": "file_access", "file_access": "check_file_info"}

    @property
    def _kind(self) -> list[str]:
        """What Slack makes of the name's ending, and its media type."""
        ending = self.upload.name.rpartition(".")[2].lower()
        return texts_at(CONSTANTS["file_kinds"], ending) or _BINARY


@dataclass(slots=True)
class Expected:
    """A requested upload. Its `content` is None until all of it arrived."""

    name: str
    length: int
    content: bytes | None = None


@dataclass(slots=True)
class Files:
    """All of them, by id. `moved` sends a download elsewhere; `fetched` are those asked for."""

    app: AppIdentity
    stored: dict[str, SharedFile] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)
    expected: dict[str, Expected] = field(default_factory=dict)

    def add(self, user: str, team: str, upload: Upload) -> SharedFile:
        if not upload.name.strip():
            raise CannotDoThat("a file needs a name")
        shared = SharedFile(opaque("F"), user, team, upload)
        self.stored[shared.id] = shared
        return shared

    def delete(self, file_id: str) -> None:
        """Raises CannotDoThat when there is no such file."""
        if file_id not in self.stored:
            raise CannotDoThat(f"there is no file {file_id}")
        self.stored[file_id] = replace(self.stored[file_id], is_deleted=True)

    def add_to(self, router: web.UrlDispatcher) -> None:
        router.add_get(_PRIVATE + "{where}/{name}", self.serve)
        router.add_get(_PRIVATE + "{where}/download/{name}", self.serve)
        router.add_post(UPLOAD + "{file}", self.receive)

    async def receive(self, request: web.Request) -> web.Response:
        """Take the bytes for an address of files.getUploadURLExternal; another size is refused."""
        expected = self.expected.get(request.match_info["file"])
        content = await request.read()
        if expected is None or len(content) != expected.length:
            raise web.HTTPBadRequest(text="not the file that was announced")
        expected.content = content
        return web.Response(text=f"OK - {len(content)}")

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """The content for the app's token; who may not read it is sent to sign in, as Slack does."""
        file_id = request.match_info["where"].rpartition("-")[2]
        self.fetched.append(file_id)
        if target := self.moved.get(file_id):
            raise web.HTTPFound(target)
        allowed = request.headers.get("authorization") == f"Bearer {self.app.bot_token}"
        if not allowed or READ_SCOPE not in self.app.scopes:
            raise web.HTTPFound(f"/?redir={request.path}")
        shared = self.stored.get(file_id)
        if shared is None or shared.is_deleted or shared.upload.mode == "external":
            raise web.HTTPNotFound(text="<html><title>Not found</title></html>")
        media = shared.as_slack("", self.app.team_id)["mimetype"]
        return web.Response(body=shared.upload.content, headers={"content-type": str(media)})
