"""`/kortex`: private, for admins where it matters, and written down before it is answered."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from adapters.llm.messages import Message, Role, Usage
from bot.demo.workspace.block_rules import check_blocks
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.budget import BudgetLimits
from bot.domain.feedback import Vote
from bot.domain.freeze import stopped_by_switch
from bot.domain.ids import SessionId, TurnId, UserId
from bot.domain.provider_status import ProviderStatus
from bot.domain.session import TurnState
from bot.domain.tool_status import ToolHealth, ToolReport, ToolsetCost, ToolStatus
from bot.ports.failures import StorageUnavailable
from bot.ports.ledger import LedgerEntry
from bot.slack.ingress.payloads import SlashCommand
from bot.slack.listeners import replies
from bot.slack.listeners.commands import ChartCommand, Commands
from bot.slack.listeners.ports import IngressSettings
from bot.slack.roles.directory import CANNOT_CHECK
from tests.fakes.role_table import RoleTable
from tests.fixtures_stores import HELD, ROUND
from tests.slack_ingress import IDENTITY, Ingress, Payload, command
from tools.redactor import Redacted

SETTINGS = IngressSettings(
    IDENTITY, admin_roles=("lead",), budget=BudgetLimits(daily_usd_micros=10_000_000)
)


@pytest.fixture
def ingress() -> Ingress:
    return Ingress(SETTINGS)


async def ask(ingress: Ingress, text: str, **fields: str) -> str:
    answer = json.loads((await ingress.send(command(text, **fields))).body)
    assert answer["response_type"] == "ephemeral"
    return str(answer["text"])


@pytest.mark.parametrize("text", ["help", "", "  HELP "])
async def test_help_is_for_everyone(ingress: Ingress, text: str) -> None:
    answer = await ask(ingress, text, user_id="U9")
    assert replies.COMMAND_HELP in answer
    assert ingress.memory.audit_log == []


async def test_an_unknown_subcommand_shows_help_and_echoes_only_inert_text(
    ingress: Ingress,
) -> None:
    answer = await ask(ingress, "<!channel> `x`")
    assert replies.COMMAND_HELP in answer
    assert "<!channel>" not in answer


@pytest.mark.parametrize("text", ["budget", "providers", "tools", "quality", "audit"])
async def test_figures_are_for_admins_and_the_attempt_is_audited(
    ingress: Ingress, text: str
) -> None:
    answer = await ask(ingress, text, user_id="U2")
    (row,) = ingress.memory.audit_log
    assert answer == f"{replies.FOR_ADMINS[text]}: @lead."
    assert (row.kind, row.actor, row.body["allowed"]) == (AuditKind.ADMIN_COMMAND, "U2", False)


async def test_budget_lists_spending_by_person(ingress: Ingress) -> None:
    await ingress.ledger.record(
        LedgerEntry(
            SessionId("s"),
            TurnId("t"),
            1,
            UserId("U0ASKER"),
            "C1",
            "anthropic",
            "m",
            "investigate",
            Usage(input_uncached=100, output=20),
            2_500_000,
            900,
        )
    )
    answer = await ask(ingress, "budget")
    assert "$2.5000 of $10.0000 (25 %)" in answer
    assert "`█████░░░░░░░░░░░░░░░`" in answer
    assert "<@U0ASKER>: $2.5000, 1 round, 120 tokens" in answer
    assert "anthropic: $2.5000" in answer
    assert [row.body["allowed"] for row in ingress.memory.audit_log] == [True]


@pytest.mark.parametrize(
    ("session", "shown"),
    [
        ("session:T1:C0CHECKOUT:1795330951.190433", "<#C0CHECKOUT>, 07:02 UTC"),
        ("session:T1:D0MIRA:1795330951.190433", "a direct message, 07:02 UTC"),
        ("session:T1:D0MIRA:", "a direct message"),
        ("session:headless:incident-x:1795330951.190433", "incident-x, 07:02 UTC"),
    ],
)
async def test_budget_names_a_thread_by_its_channel_and_time(
    ingress: Ingress, session: str, shown: str
) -> None:
    await ingress.ledger.record(replace(ROUND, session_id=SessionId(session)))

    answer = json.loads((await ingress.send(command("budget"))).body)

    check_blocks(answer["blocks"], "message")
    assert f"• {shown}: $" in answer["text"]
    assert "session:" not in json.dumps(answer)


async def test_providers_lists_their_states_with_reasons(ingress: Ingress) -> None:
    ingress.providers = [
        ProviderStatus("anthropic", True),
        ProviderStatus("openai", False, "no <key>"),
    ]
    answer = await ask(ingress, "providers")
    assert "anthropic: configured, but not in default_provider" in answer
    assert "openai: not available, no &lt;key&gt;" in answer


@pytest.mark.parametrize("foreign", [{"team_id": "T9"}, {"api_app_id": "A9"}])
async def test_a_command_from_another_workspace_learns_nothing(
    ingress: Ingress, foreign: dict[str, str]
) -> None:
    assert await ask(ingress, "budget", **foreign) == replies.EXTERNAL
    assert ingress.memory.audit_log == []


class BrokenAudit:
    async def append(self, event: AuditEvent) -> None:
        raise StorageUnavailable("full")

    append_with_step = append


async def test_a_command_that_cannot_be_audited_is_not_answered(ingress: Ingress) -> None:
    ports = replace(ingress.ports, audit=BrokenAudit())
    commands = Commands(SETTINGS, ports, ChartCommand(ports, ingress.background))
    payload: Payload = command("providers")
    answer = await commands.answer(SlashCommand.model_validate(payload))
    assert answer.text == replies.CANNOT_AUDIT


async def test_today_is_the_ledgers_day(ingress: Ingress) -> None:
    ingress.memory.now = lambda: datetime(2026, 4, 7, tzinfo=UTC)
    assert "• nothing yet" in await ask(ingress, "budget")


async def test_audit_shows_the_newest_rows_and_echoes_only_inert_text(ingress: Ingress) -> None:
    for n in range(20):
        body: dict[str, JsonValue] = {"tool": f"<!channel> {n}"}
        ingress.memory.append(AuditEvent(AuditKind.TOOL_CALL, UserId("U0ASKER"), body))
    answer = await ask(ingress, "audit", user_id="U1")
    assert "*Audit log*: 21 rows" in answer
    assert "<@U0ASKER> · &lt;!channel&gt; 19" in answer
    assert "&lt;!channel&gt; 5\n" not in answer
    assert "<!channel>" not in answer


async def test_budget_is_a_table_that_slack_accepts(ingress: Ingress) -> None:
    ingress.memory.now = lambda: datetime(2026, 4, 7, 6, tzinfo=UTC)
    for number in range(40):
        person, cost = (UserId("U0ASKER"), 10_000) if number else (UserId("U1"), None)
        await ingress.ledger.record(
            replace(
                ROUND,
                turn_id=TurnId(f"t{number}"),
                session_id=SessionId(f"s<{number}>"),
                user=person,
                cost_usd_micros=cost,
                counted_usd_micros=cost or 70_000,
            )
        )
    await ingress.ledger.reserve(HELD, BudgetLimits(daily_usd_micros=10_000_000))

    answer = json.loads((await ingress.send(command("budget"))).body)

    headline, table = answer["blocks"]
    check_blocks(answer["blocks"], "message")
    words_ = headline["text"]["text"]
    assert "$0.4600 of $10.0000 (4 %)" in words_
    assert "At this rate today will cost $1.8400." in words_
    assert "$0.0700 of it is assumed" in words_
    assert "$0.0006 more is reserved" in words_
    kinds = [row[0]["text"] for row in table["rows"][1:]]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "Person": 2, "Channel": 1, "Provider": 1, "Thread": 15,
    }  # fmt: skip
    assert table["rows"][1][1]["elements"][0]["elements"][0]["user_id"] == "U0ASKER"
    assert "s&lt;" in answer["text"]


async def test_freeze_reports_its_state_when_the_database_is_read_only(ingress: Ingress) -> None:
    ingress.switch.broken = True
    assert "Frozen in this process" in await ask(ingress, "freeze on  &lt;!channel&gt; now")
    assert (ingress.switch.by, ingress.switch.reason) == ("U1", "<!channel> now")
    answer = await ask(ingress, "freeze off")
    assert "Still frozen" in answer
    assert ingress.switch.frozen
    assert "&lt;!channel&gt; now" in await ask(ingress, "freeze")
    assert "&lt;!channel&gt; now" in await ask(ingress, "freeze status")


async def test_freeze_needs_no_audit_row_to_take_effect(ingress: Ingress) -> None:
    async def away(_event: AuditEvent) -> None:
        raise StorageUnavailable("read-only")

    ingress.ports.audit.append = away  # type: ignore[method-assign, assignment]
    assert "Frozen:" in await ask(ingress, "FREEZE ON")
    assert ingress.switch.frozen


@pytest.mark.parametrize("text", ["freeze on", "freeze off", "freeze", "freeze status"])
async def test_freeze_is_for_admins(ingress: Ingress, text: str) -> None:
    answer = await ask(ingress, text, user_id="U2")
    assert answer == "Only admins can freeze actions: @lead."
    assert not ingress.switch.frozen


@pytest.mark.parametrize("text", ["freeze maybe", "freeze onn"])
async def test_freeze_shows_its_usage(ingress: Ingress, text: str) -> None:
    assert "freeze on [reason]" in await ask(ingress, text)
    assert not ingress.switch.frozen


async def test_tools_shows_the_health_of_each_and_unloaded_ones(ingress: Ingress) -> None:
    slow = ToolHealth({"ok": 10, "upstream": 2}, 0.25, None)
    ingress.tools = ToolReport(
        (
            ToolStatus("core__get_traces", ("investigate",), "not set: [observe.traces]"),
            ToolStatus("core__get_time", ("investigate",)),
            ToolStatus("core__get_logs", ("investigate", "recommend"), "", slow),
        ),
        (ToolsetCost("investigate", 13, 2900),),
        ("plugins/<bad>.yaml:3: timeout: must be at most 300s",),
    )

    answer = await ask(ingress, "tools")

    assert answer.splitlines()[1:] == [
        "• `core__get_logs` investigate, recommend: 12 calls, 2 upstream, half under 0.25 s, "
        "95 % over 5 minutes",
        "• `core__get_time` investigate: not called yet",
        "• `core__get_traces` not offered: not set: [observe.traces]",
        "*Your own*",
        "• plugins/&lt;bad&gt;.yaml:3: timeout: must be at most 300s",
        "*Toolsets*",
        "• investigate: 13 tools, at most 2,900 tokens in every request",
    ]


async def test_failing_tools_are_shown_among_hundreds(ingress: Ingress) -> None:
    tools = [ToolStatus(f"mcp__x__t{n:03}") for n in range(200)]
    broken = ToolStatus("mcp__x__z", ("all",), "", ToolHealth({"execution": 1}, 0.1, 0.1))
    notes = tuple(f"p{n}.yaml:1: bad" for n in range(30))
    ingress.tools = ToolReport((*tools, broken), (), notes)

    lines = (await ask(ingress, "tools")).splitlines()

    assert "mcp__x__z" in lines[1]
    assert "• and 121 more: `kortex tools` lists them" in lines
    assert "• and 10 more" in lines


async def judged(ingress: Ingress, channel: str, reason: str) -> None:
    ask = await ingress.session_at("100.1", channel)
    said = [Message(Role.ASSISTANT, text="because", provider="anthropic")]
    now = ingress.memory.now()
    await ingress.sessions.finish_turn(ask.turn_id, TurnState.ANSWERED, said, [], now)
    await ingress.feedback.vote(ask.turn_id, ask.asker, Vote.DOWN, channel)
    await ingress.feedback.explain(ask.turn_id, ask.asker, Redacted(reason), f"{channel}:why")


async def test_quality_counts_everywhere_and_quotes_only_where_the_admin_may_read(
    ingress: Ingress,
) -> None:
    members = {"C1": ["U1"], "C2": ["U2"]}
    ingress.api.answers["conversations.info"] = {"channel": {"is_private": True}}
    ingress.api.answers["conversations.members"] = lambda asked: {
        "members": list[JsonValue](members[str(asked["channel"])])
    }
    await judged(ingress, "C1", "wrong <service> @channel https://evil.test")
    await judged(ingress, "C2", "hidden words")

    answer = json.loads((await ingress.send(command("quality"))).body)

    check_blocks(answer["blocks"], "message")
    assert "24 hours: anthropic 👍 0, 👎 2, of 2 answers" in answer["text"]
    assert "<#C1>: “wrong &lt;service&gt;" in answer["text"]
    assert "1 more in channels that you are not in" in answer["text"]
    assert "hidden words" not in json.dumps(answer)
    assert "@channel" not in json.dumps(answer)
    assert "U1" not in answer["text"]


async def test_quality_without_votes_says_so(ingress: Ingress) -> None:
    answer = await ask(ingress, "quality")
    assert "no answer was given in 30 days" in answer
    assert "none was given" in answer


async def test_very_many_hostile_reasons_fit_one_message(ingress: Ingress) -> None:
    ingress.api.answers["conversations.info"] = {
        "channel": {"is_channel": True, "is_private": False}
    }
    for n in range(50):
        await judged(ingress, f"C{n}", "<&>`*_~@here\u202e" * 50)

    answer = json.loads((await ingress.send(command("quality"))).body)

    check_blocks(answer["blocks"], "message")
    assert "\u202e" not in answer["text"]


async def test_a_refused_budget_command_has_its_own_message(
    ingress: Ingress,
) -> None:
    answer = await ask(ingress, "budget", user_id="U2")
    assert answer == "Only admins can see the budget: @lead."
    assert "decide" not in answer


async def test_an_admin_who_cannot_be_looked_up_gets_a_message_and_no_figures(
    ingress: Ingress,
) -> None:
    class Away(RoleTable):
        async def refusal(self, *_: object, **__: object) -> str:
            return CANNOT_CHECK

    ports = replace(ingress.ports, roles=Away())
    payload = SlashCommand.model_validate(command("budget"))
    answer = await Commands(SETTINGS, ports, ChartCommand(ports, ingress.background)).answer(
        payload
    )
    assert answer.text == f"Only admins can see the budget: @lead. {replies.NOT_CHECKED}"


async def test_a_missing_admin_role_names_the_setting(ingress: Ingress) -> None:
    ingress.settings = IngressSettings(IDENTITY)
    assert "no role is set for that (`[admins] roles`)" in await ask(ingress, "audit")


async def test_a_freeze_message_mentions_no_author(ingress: Ingress) -> None:
    await ask(ingress, "freeze on the database moves", user_id="U1")
    ingress.switch.by = "U0ADMIN"
    answer = await ask(ingress, "freeze")
    assert "by <@U0ADMIN>: the database moves." in answer
    told = stopped_by_switch(await ingress.switch.state())
    assert "U0ADMIN" not in told
    assert "by an admin (the database moves)" in told
