"""A provider written by CONTRIBUTING's recipe works: one file, one registry line, a whole turn."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.llm import registry
from tests.fakes.model_server import Round
from tests.fakes.toy_provider import Toy
from tests.fixtures_service import Start, stage

__all__ = ["stage"]

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
LOOK = b'{"say":"Looking. "}\n{"use":"core__get_current_time","with":{}}\n{"end":5}\n'
TELL = b'{"say":"The new version "}\n{"say":"leaks [E1]."}\n{"end":7}\n'


async def answer(request: web.Request) -> web.Response:
    looked = b'"role":"tool"' in await request.read()
    return web.Response(body=TELL if looked else LOOK)


@pytest.fixture
async def toy_url() -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/toy", answer)
    async with TestServer(app) as server:
        yield str(server.make_url(""))


async def test_a_provider_by_the_recipe_answers_in_slack(
    stage: Start, toy_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry._PROVIDERS, "toy", Toy)
    toy = {"api_key": "k", "base_url": toy_url}
    more = {
        "llm": {
            "default_provider": "toy",
            "providers": {"toy": toy},
            "models": {"toy-1": {"usd_per_mtok": {"input": 1, "output": 1_000_000}}},
        }
    }
    async with stage([Round(text=("never",))], more) as running:
        shown = await running.answered("@kortex why?")

    assert "The new version leaks" in shown
    assert "toy" in shown
    assert "$12" in shown
    assert running.models.requests == []


def test_the_recipe_fits_in_forty_lines() -> None:
    recipe = CONTRIBUTING.read_text("utf-8").split("**Add a model provider**")[1].split("\n\n")[0]
    steps = [line for line in recipe.splitlines() if line[:1].isdigit()]
    assert 1 <= len(steps) <= 8
    assert "tests/fakes/toy_provider.py" in recipe
