"""`kortex chat` against a running bot: asked, looked up, decided and left at a prompt."""

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.http.client import http_client
from bot.cli.chat.client import ChatClient
from bot.cli.chat.conversation import TerminalConversation
from bot.cli.chat.screen import Screen
from tests.fakes.control_plane_server import says
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_api import token_for
from tests.fixtures_service import shared_stage
from tests.stage import Stage, question_of, results

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = {
    "channels": [{"match": "incident-*", "products": ["checkout"], "confirm": ["responder"]}]
}
PROPOSAL = {
    "action": "rollback-deploy",
    "product": "checkout",
    "params": {"version": "v2.3.7"},
    "rationale": "p99 rose with the deploy",
}
HOSTILE = "The pool is \x1b]0;owned\x07full\x1b[2J of \u202eevil\u202c [E1]."
P99 = {
    "product": "checkout",
    "metric_name": "http_request_duration_seconds_p99",
    "time_range": "last 30m",
}


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Look at a metric and say so, with terminal sequences; propose, or go on for ever, where asked."""
    asked = question_of(request)
    if "for ever" in asked:
        return Round(text=("Still ", "looking. "), hold=asyncio.Event(), hold_at=3)
    if results(request):
        return Round(text=("I looked. ", HOSTILE))
    if "propose" in asked:
        return Round(calls=(Call("core__propose_action", PROPOSAL),))
    return Round(calls=(Call("core__get_metrics", P99),))


class Terminal:
    """A person at a prompt: what is typed, in order, and all that was shown."""

    def __init__(self, client: ChatClient) -> None:
        self.typed: deque[str] = deque()
        self.prompts: list[str] = []
        self._shown: list[str] = []
        self.talk = TerminalConversation(
            client, Screen(self._shown.append), self._read, "incident-checkout"
        )

    async def _read(self, prompt: str) -> str | None:
        self.prompts.append(prompt)
        return self.typed.popleft() if self.typed else None

    async def type(self, *lines: str) -> str:
        self._shown.clear()
        self.typed.extend(lines)
        await self.talk.run()
        return "".join(self._shown)

    @property
    def shown(self) -> str:
        return "".join(self._shown)


@pytest.fixture
def stage(shared_stage: Stage) -> Stage:
    shared_stage.plane.received.clear()
    shared_stage.plane.post = says(200, {"rolled_back_to": "v2.3.7"})
    return shared_stage


async def terminals(stage: Stage, name: str, *roles: str) -> AsyncIterator[Terminal]:
    token = await token_for(stage, name, *roles)
    headers = {"Authorization": f"Bearer {token}"}
    url = f"http://127.0.0.1:{stage.service.http_port}"
    client = http_client(base_url=url, headers=headers)
    yield Terminal(ChatClient(client))
    await client.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def alice(stage: Stage) -> AsyncIterator[Terminal]:
    async for each in terminals(stage, "alice", "responder"):
        yield each


@pytest_asyncio.fixture(loop_scope="module")
async def bob(stage: Stage) -> AsyncIterator[Terminal]:
    async for each in terminals(stage, "bob", "responder"):
        yield each


def proposal_in(shown: str) -> str:
    return shown.rpartition("/reject ")[2].split(".")[0].strip()


async def test_a_growing_answer_with_evidence_cannot_move_the_cursor(
    alice: Terminal,
) -> None:
    told = await alice.type("why is checkout slow?")

    assert told.count("I looked. The pool is full of \\u202eevil\\u202c [E1].") == 1
    assert "E1 get_metrics:" in told
    assert "\x1b" not in told
    assert "\x07" not in told


async def test_a_result_opens_with_a_text_chart(alice: Terminal) -> None:
    told = await alice.type("why is checkout slow?", "/evidence 1")

    assert "http_request_duration_seconds_p99" in told
    assert told.count("█") > 20
    assert '"truncated": false' in told


async def test_a_proposal_is_shown_whole_and_runs_only_after_its_id_is_typed(
    alice: Terminal, stage: Stage
) -> None:
    raised = await alice.type("propose a rollback")
    lines = {line.strip() for line in raised.splitlines()}
    assert {"arguments: version v2.3.7", "asked by: @person/alice"} <= lines
    proposal = proposal_in(raised)

    left = await alice.type(f"/confirm {proposal}", "yes")
    assert "Nothing was changed." in left
    assert stage.plane.received == []

    told = await alice.type(f"/confirm {proposal}", proposal[-4:])
    assert "Your decision counted." in told
    again = await alice.type(f"/confirm {proposal}", proposal[-4:])
    assert "so it cannot be decided" in again
    async with asyncio.timeout(20):
        while "succeeded" not in (ended := await alice.type(f"/proposal {proposal}")):  # noqa: ASYNC110 - the order is sent elsewhere
            await asyncio.sleep(0.02)
    assert "decided by: @person/alice" in ended
    assert len(stage.plane.received) == 1


async def test_an_edit_to_an_undeployed_version_gets_a_warning(
    alice: Terminal, stage: Stage
) -> None:
    await stage.close_open()
    proposal = proposal_in(await alice.type("propose a rollback"))
    await stage.change("UPDATE proposals SET supersedes = 'p_0' WHERE id = ?", proposal)
    assert "was never deployed" not in await alice.type(f"/proposal {proposal}")

    edited = '{"version":"v9.9.9"}'
    await stage.change("UPDATE proposals SET params = ? WHERE id = ?", edited, proposal)
    shown = await alice.type(f"/proposal {proposal}")
    assert "Version v9.9.9 was not deployed to checkout" in shown
    await stage.close_open()


async def test_a_late_decision_reports_the_earlier_one(
    alice: Terminal, bob: Terminal, stage: Stage
) -> None:
    proposal = proposal_in(await alice.type("propose a rollback"))
    await alice.type(f"/reject {proposal} not now")

    told = await bob.type(f"/reject {proposal} me neither")

    assert "Already rejected by alice" in told
    assert stage.plane.received == []


async def test_ctrl_c_stops_the_answer_and_keeps_its_text(alice: Terminal) -> None:
    asking = asyncio.ensure_future(alice.type("go on for ever"))
    async with asyncio.timeout(20):
        while "Still " not in alice.shown:  # noqa: ASYNC110 - the answer grows elsewhere
            await asyncio.sleep(0.02)
        assert await alice.talk.interrupt()
        told = await asking

    assert "Still looking." in told
    assert not await alice.talk.interrupt()


async def test_a_conversation_is_resumed_and_a_new_one_is_started(alice: Terminal) -> None:
    await alice.type("why is checkout slow?")
    first = alice.talk.session

    assert f"{first}  " in await alice.type("/sessions")
    await alice.type("/new", "why again?")
    assert alice.talk.session != first

    told = await alice.type(f"/session {first}", "/evidence [E1]")
    assert "why is checkout slow?" in told
    assert "E1 get_metrics" in told


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["/nonsense"], "There is no '/nonsense'"),
        (["/evidence 1"], "Ask something first."),
        (["/evidence"], "Ask something first."),
        (["/confirm"], "Which one?"),
        (["/confirm nobody's"], "There is nothing by this name."),
        (["/confirm p_000000"], "There is no such proposal, or you may not see it."),
        (["/session s_1"], "There is nothing by this name."),
        (["/stop"], "No answer is running."),
        (["", "   "], ""),
    ],
)
async def test_an_impossible_command_is_refused_and_the_conversation_continues(
    bob: Terminal, lines: Sequence[str], words: str
) -> None:
    assert words in await bob.type(*lines)
    assert not bob.talk.failed  # its exit code is of questions


async def test_a_caller_who_may_not_ask_gets_the_reason(stage: Stage) -> None:
    async for nobody in terminals(stage, "nobody"):
        told = await nobody.type("why is checkout slow?")

        assert nobody.talk.failed
        assert "You have no role that can ask" in told
        assert "`kortex token create --help`" in told


async def test_piped_lines_are_asked_one_after_the_other(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(await token_for(stage, "pipe", "responder"))
    file.chmod(0o600)
    url = f"http://127.0.0.1:{stage.service.http_port}"

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot", "chat", "--url", url, "--token-file", str(file),
        "--channel", "incident-checkout",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    told, _ = await process.communicate(b"why is checkout slow?\n/sessions\n/quit\nnot asked\n")

    assert process.returncode == 0
    assert told.decode().count("I looked. The pool is full") == 1
    assert "#incident-checkout  (this one)" in told.decode()
    assert b"\x1b" not in told


async def test_chat_starts_without_the_services_settings() -> None:
    heavy = {"slack_sdk", "slack_bolt", "dbos", "sqlalchemy", "alembic"}
    seen = f"import sys, bot.cli.chat.command; print({heavy} & sys.modules.keys())"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", seen, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate()

    assert told == b"set()\n"
