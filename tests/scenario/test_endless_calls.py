"""A model that repeats its question: it gets a notice, the backend is spared, the turn ends."""

import json

from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import Start, stage
from tests.stage import results

__all__ = ["stage"]

LOGS = Call("core__get_logs", {"product": "checkout", "time_range": "last 30m"})


def script(request: Recorded) -> Round:
    found = results(request)
    if any("made twice in this turn already" in each for each in found):
        return Round(text=("It is the database [E1].",))
    return Round(calls=(LOGS,))


async def test_a_repeated_call_is_cached_then_refused_and_the_answer_comes(stage: Start) -> None:
    async with stage(script) as running:
        answer = await running.answered("@kortex why is checkout slow?")
        rows = running.query("SELECT body FROM audit WHERE kind = 'tool.call' ORDER BY seq")
        first, second, third = results(running.models.requests[-1])

    bodies = [json.loads(body) for (body,) in rows]
    assert [(b["ok"], b["cached"], b["error"]) for b in bodies] == [
        (True, False, None),
        (True, True, None),
        (False, False, "policy_denied"),
    ]
    assert "from_cache" not in first
    assert "from_cache" in second
    assert "use its results" in third
    assert "It is the database" in answer
