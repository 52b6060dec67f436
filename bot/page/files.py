"""The files of a page, served unchanged; the page may load nothing from elsewhere.

There are two pages: `demo`, a local Slack, and `operator`, for watching a running Kortex. `shared`
has their common files.
"""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

_HERE = Path(__file__).parent
_SHARED = _HERE / "shared"
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
    """`/` and `/page/<file>` of the page of that name, read once, when first asked for."""

    name: str
    _files: dict[str, bytes] = field(default_factory=dict)

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/", self.serve)
        app.router.add_get("/page/{name}", self.serve)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One file. Raises HTTPNotFound."""
        name = request.match_info.get("name", "index.html")
        if not self._files:
            self._files = await asyncio.to_thread(_read_all, self.name)
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


def _read_all(page: str) -> dict[str, bytes]:
    found = [path for folder in (_SHARED, _HERE / page) for path in folder.iterdir()]
    return {path.name: path.read_bytes() for path in found if path.suffix in _TYPES}
