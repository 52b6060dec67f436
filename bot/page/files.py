"""The page's files, served as they are, allowed to load nothing from anywhere else."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

_PAGE = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(slots=True)
class PageFiles:
    """`/` and `/page/<file>`, read once at start."""

    _files: dict[str, bytes] = field(default_factory=dict)

    def add_to(self, app: web.Application) -> None:
        """Register the routes and the reading."""
        app.on_startup.append(self._load)
        app.router.add_get("/", self._serve)
        app.router.add_get("/page/{name}", self._serve)

    async def _load(self, _app: web.Application) -> None:
        self._files = await asyncio.to_thread(_read_all)

    async def _serve(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "index.html")
        if name not in self._files:
            raise web.HTTPNotFound
        return web.Response(
            body=self._files[name],
            content_type=_TYPES[Path(name).suffix],
            charset="utf-8",
            headers={
                "content-security-policy": _POLICY,
                "cache-control": "no-cache",
                "x-content-type-options": "nosniff",
                "referrer-policy": "no-referrer",
            },
        )


def _read_all() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in _PAGE.iterdir() if path.suffix in _TYPES}
