"""Canaries in twelve places, and a model that repeats every one: none is found anywhere again.

Searched are all bytes sent to Slack, all bodies sent to models, the log, and every database row.
"""

import time
from contextlib import AsyncExitStack

from aiohttp.test_utils import TestServer

from bot.demo.workspace.seeds import RESPONDER
from tests.fakes.control_plane_server import says
from tests.fakes.loki_server import LokiServer, Stored
from tests.fakes.model_server import Call, Failure, ModelServer, Recorded, Round
from tests.fixtures_service import API_KEY, INGEST_TOKEN, PLANE_TOKEN, Start, stage
from tests.stage import CONFIRM, REJECT, Stage, results

__all__ = ["stage"]

TYPED = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
LOGGED = "AKIAQ3EGRZ7YPWLM2XKD"
DSN_PASSWORD = "Vq8-hunter-Lx51"
LABELLED = "glpat-Zx81Kq5RtYu0PmWe7Hq2"
ANSWERED = "sk_live_9aBcD3fGhJkLmN5pQr7T"
REASONED = "npm_a8Kq51RtYu0PmWe7Hq2Zx9LkJhGfDs34aQw"
PROPOSAL = {
    "action": "rollback-deploy",
    "product": "checkout",
    "params": {"version": "v1"},
    "rationale": "because",
}
# As long a beginning of a secret as may be seen while its end has not arrived.
LONGEST_BEGINNING = 8


def configured(stage: Stage) -> list[str]:
    slack = stage.workspace
    return [
        *(slack.bot_token, slack.app_token, slack.signing_secret),
        *(API_KEY, PLANE_TOKEN, INGEST_TOKEN),
    ]


def found(stage: Stage, *canaries: str) -> list[tuple[str, str]]:
    """(where, which) of every canary that got out."""
    places = {
        "Slack": stage.sent(),
        "models": stage.prompted(),
        "log": stage.log.getvalue(),
        "database": stage.rows(),
        "control plane": "".join(r.body.decode() for r in stage.plane.received),
    }
    wanted = (*configured(stage), *canaries)
    return [(place, c) for place, text in places.items() for c in wanted if c in text]


async def test_a_typed_read_or_answered_secret_never_leaves(stage: Start) -> None:
    line = f"cannot connect to postgres://shop:{DSN_PASSWORD}@db key {LOGGED}"
    labels = {"service_name": "checkout", "host": LABELLED}
    loki = LokiServer([Stored(time.time_ns() - 10**9, line, labels, {"detected_level": "error"})])

    def script(request: Recorded) -> Round:
        read = results(request)
        where = {"product": "checkout", "time_range": "last 30m", "query": ""}
        calls = (Call("core__get_logs", where), Call("core__propose_action", PROPOSAL))
        return Round(text=(f"It says {''.join(read)}",)) if read else Round(calls=calls)

    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(TestServer(loki.app()))
        none = {"kind": "none"}
        logs = {"kind": "loki", "url": str(server.make_url(""))}
        more = {"observe": {"logs": logs, "metrics": none, "traces": none}}
        running = await stack.enter_async_context(stage(script, more))
        running.plane.post = says(200, {"ok": True, "key": ANSWERED, "used": PLANE_TOKEN})

        asked = await running.ask(f"@kortex {TYPED} does not work, password=Hunter2-{TYPED}")
        answer = await running.answer(asked)
        await running.press(RESPONDER, await running.card(asked), CONFIRM)
        await running.note(asked, ": succeeded.")
        await running.answered(f"and {TYPED}?", thread=asked.thread)
        await running.open_result(RESPONDER, running.parts(asked)[-1])

        assert "cannot connect to" in answer
        assert "[redacted:url-credential" in str(running.workspace.modals_of(RESPONDER))
        secrets = (TYPED, LOGGED, DSN_PASSWORD, LABELLED, ANSWERED)
        assert found(running, *secrets) == []


async def test_a_model_that_repeats_every_secret_is_masked_at_every_moment(stage: Start) -> None:
    secrets: list[str] = []

    def script(request: Recorded) -> Round:
        if results(request):
            # In pieces of five characters, so that every edit meets a secret cut somewhere.
            text = " then ".join([*secrets, "the end."])
            pieces = tuple(text[at : at + 5] for at in range(0, len(text), 5))
            return Round(text=pieces, pace_s=0.002)
        leak = {"product": "checkout", "time_range": "last 30m"}
        calls = [Call("core__get_logs", {**leak, "query": s}) for s in secrets]
        named = [Call(f"core__{s}", {"a": s}, id=s) for s in secrets[:2]]
        raw = [Call("core__get_logs", f'{{"product": "{secrets[2]}')]
        noted = {**PROPOSAL, "rationale": f"use {secrets[3]}", "blast_radius": secrets[4]}
        return Round(calls=(*calls, *named, *raw, Call("core__propose_action", noted)))

    async with stage(script) as running:
        secrets.extend([*configured(running), LOGGED, TYPED])
        asked = await running.ask("@kortex why?")
        await running.answer(asked)
        await running.card(asked)
        await running.answered("again", thread=asked.thread)

        assert found(running, LOGGED, TYPED) == []
        edits = [c for c in running.workspace.calls if c.method == "chat.update"]
        assert len(edits) > 5
        beginnings = [s[: LONGEST_BEGINNING + 6] for s in secrets]
        assert [b for b in beginnings if b in running.sent()] == []


async def test_a_reason_is_masked_before_it_is_stored(stage: Start) -> None:
    def script(request: Recorded) -> Round:
        calls = (Call("core__propose_action", PROPOSAL),)
        return Round(text=("proposed",)) if results(request) else Round(calls=calls)

    async with stage(script) as running:
        asked = await running.ask("@kortex why?")
        await running.answer(asked)
        await running.press(RESPONDER, await running.card(asked), REJECT)
        view = await running.workspace.wait_for(lambda: running.workspace.modals_of(RESPONDER))
        await running.workspace.submit(RESPONDER, str(view[-1]["id"]), {"text": f"not {REASONED}"})
        await running.card(asked, "Rejected")
        await running.answered("and now?", thread=asked.thread)

        assert found(running, REASONED) == []


async def test_a_provider_that_quotes_its_key_in_an_error_is_masked(stage: Start) -> None:
    refusal = Failure(401, f"Incorrect API key provided: {API_KEY}; token {LOGGED}")

    more = {"llm": {"triage_fallback": False}}
    async with stage(lambda _: Round(failure=refusal), more) as running:
        answer = await running.answered("@kortex why?")

        assert "could not be finished" in answer
        assert found(running, LOGGED) == []


async def test_each_model_server_gets_only_its_own_key(stage: Start) -> None:
    down = Round(failure=Failure(401, "no"))
    async with ModelServer(lambda _: Round(text=("fine",))) as other:
        providers = {"anthropic": {"api_key": "other-key-Kq51RtYu0Pm", "base_url": other.url}}
        more = {"llm": {"fallback_providers": ["anthropic"], "providers": providers}}
        async with stage(lambda _: down, more) as running:
            await running.answered("@kortex why?")

            first, second = running.models.requests[0].headers, other.requests[0].headers
            assert first["authorization"] == f"Bearer {API_KEY}"
            assert second["x-api-key"] == "other-key-Kq51RtYu0Pm"
            assert API_KEY not in str(second)
            assert "other-key" not in str(first)
