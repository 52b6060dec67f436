"""An address in a log: the model gets a placeholder, people and tools get the address."""

import re
import time
from contextlib import AsyncExitStack

from aiohttp.test_utils import TestServer

from tests.fakes.loki_server import LokiServer, Stored
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import Start, stage
from tests.stage import results

__all__ = ["stage"]

ADDRESS = "ana.silva@shop.example"
PLACEHOLDER = re.compile(r"\[redacted:email#[0-9a-f]{12}\]")
WHERE = {"product": "checkout", "time_range": "last 30m"}


def script(request: Recorded) -> Round:
    read = "".join(results(request))
    seen = PLACEHOLDER.findall(read)
    steps = (
        Round(calls=(Call("core__get_logs", {**WHERE, "query": ""}),)),
        Round(calls=(Call("core__get_logs", {**WHERE, "query": (seen or [""])[0]}),)),
        Round(
            text=(
                f"It is the order of {(seen or ['?'])[0]} [1], not [redacted:email#0123456789ab].",
            )
        ),
    )
    return steps[min(len(results(request)), 2)]


async def test_people_and_tools_see_the_address_that_the_model_never_sees(stage: Start) -> None:
    stored = Stored(
        time.time_ns() - 10**9,
        f"payment of {ADDRESS} failed",
        {"service_name": "checkout"},
        {"detected_level": "error"},
    )
    loki = LokiServer([stored])
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(TestServer(loki.app()))
        logs = {"kind": "loki", "url": str(server.make_url(""))}
        none = {"kind": "none"}
        more = {"observe": {"logs": logs, "metrics": none, "traces": none}}
        running = await stack.enter_async_context(stage(script, more))

        asked = await running.ask(f"@kortex why did {ADDRESS} complain?")
        answer = await running.answer(asked)

        assert f"the order of `{ADDRESS}`" in answer
        assert "[redacted:email#0123456789ab]" in answer
        assert ADDRESS not in running.prompted()
        assert ADDRESS not in running.rows()
        assert ADDRESS not in running.log.getvalue()
        assert [q for q in map(str, loki.queries) if "shop" in q and "ana" in q]
