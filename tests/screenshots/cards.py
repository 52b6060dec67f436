"""Every state of a proposal's card in one picture: the golden files through the page's own renderer."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.page.files import PageFiles
from tests.screenshots.chromium import Tab

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "blocks"
PEOPLE = {"U1": "Mira Okafor", "U2": "Jonas Weber", "U3": "Ada Lind"}
WIDTH = 1500
SCALE = 0.75  # of one picture with all of them, still readable
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


async def take_cards(tab: Tab, to: Path) -> None:
    """Write the sheet, as tall as it is."""
    async with _sheet() as origin:
        await tab.look(WIDTH, 1000)
        await tab.open(f"{origin}/sheet.html")
        await tab.until("document.body?.dataset.ready")
        height = await tab.run("Math.ceil(document.getElementById('sheet').offsetHeight)")
        await tab.look(WIDTH, height, scale=SCALE)
        await tab.picture(to)


@asynccontextmanager
async def _sheet() -> AsyncIterator[str]:
    app = web.Application()
    PageFiles("demo").add_to(app)
    cards = {
        path.stem.removeprefix("card_"): json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(GOLDEN.glob("card_*.json"))
    }
    _add_json(app, "/cards.json", cards)
    _add_json(app, "/people.json", PEOPLE)
    for name in ("sheet.html", "sheet.css", "sheet.js"):
        _add_file(app, HERE / name)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


def _add_json(app: web.Application, path: str, value: object) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response(value)

    app.router.add_get(path, answer)


def _add_file(app: web.Application, path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(text=text, content_type=TYPES[path.suffix])

    app.router.add_get(f"/{path.name}", answer)
