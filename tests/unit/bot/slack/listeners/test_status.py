"""The current activity: with links and names, and without places that the person may not see."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import JsonValue

from bot.domain.ids import ALERTS, ChannelId, MessageTs, Place, TeamId, UserId
from bot.domain.overview import RecentConversation, RunningQuestion
from bot.domain.proposal import Proposal
from bot.domain.provider_status import ProviderStatus
from bot.ports.failures import SurfaceFailed
from bot.slack.listeners.status import NOT_READ, SHOWN
from tests.slack_ingress import IDENTITY, NOW, Ingress, command, proposal

SITE = "https://acme.slack.com"
MEMBERS: dict[str, list[JsonValue]] = {"C1": ["U1"], "C2": ["U2"]}


def at(channel: str, thread: str = "100.1") -> Place:
    return Place(TeamId("T1"), ChannelId(channel), MessageTs(thread))


def card(channel: str, action: str = "restart-host", asker: str = "U9") -> Proposal:
    made = proposal(place=at(channel), action=action, card_ts=MessageTs("200.2"))
    return replace(made, asked_by=replace(made.asked_by, user=UserId(asker)))


def running(channel: str, asker: str = "U2") -> RunningQuestion:
    return RunningQuestion(at(channel), MessageTs("100.1"), UserId(asker), NOW)


@pytest.fixture
def ingress() -> Ingress:
    """Two private channels with one member each."""
    made = Ingress()
    made.settings = replace(made.settings, identity=replace(IDENTITY, site=SITE))
    made.api.answers["conversations.info"] = {"channel": {"is_private": True}}
    made.api.answers["conversations.members"] = lambda asked: {
        "members": MEMBERS.get(str(asked["channel"]), [])
    }
    return made


async def ask(ingress: Ingress, text: str, user: str = "U1") -> str:
    answer = json.loads((await ingress.send(command(text, user_id=user))).body)
    return str(answer["text"])


async def test_status_names_a_stalled_audit_sink(ingress: Ingress) -> None:
    healthy = await ask(ingress, "status")
    ingress.behind = ["http is 466 rows behind, the oldest has waited for 3.0 h"]

    assert "*Audit delivery*" not in healthy
    assert "*Audit delivery*\n• http is 466 rows behind" in await ask(ingress, "status")


async def test_status_shows_each_person_only_what_they_may_see(ingress: Ingress) -> None:
    ingress.overview.running = [
        running("C1"),
        running("C2"),
        RunningQuestion(at("C1"), MessageTs("3.3"), None, None),
    ]
    ingress.overview.open = [card("C2", "drop-secret"), card("C1")]
    ingress.switch.frozen, ingress.switch.by = True, "U0ADMIN"
    ingress.providers = [
        ProviderStatus("openai", False, "no key in `llm.providers.openai`", turn=1),
        ProviderStatus(
            "anthropic", False, "overloaded, not asked for 30 s", turn=2, circuit="open"
        ),
        ProviderStatus("ollama", False, "no address", turn=0),
        ProviderStatus("triage", True, turn=3),
    ]
    told = await ask(ingress, "status")

    thread = f"<{SITE}/archives/C1/p1001|its thread>"
    assert f"• <#C1>: a question of <@U2> since 14:35 UTC, {thread}" in told
    assert f"• <#C1>: a question is queued, {thread}" in told
    link = f"<{SITE}/archives/C1/p2002?thread_ts=100.1&cid=C1|its card>"
    assert (
        f"• <#C1>: Restart host of checkout, {link}, until 14:45 UTC; can decide: responder" in told
    )
    assert told.count("• 1 more in places that you are not in") == 2
    assert "C2" not in told
    assert "secret" not in told.lower()
    assert "🧊 Frozen since 2026-04-07 14:35 UTC by <@U0ADMIN>" in told
    assert "• anthropic: overloaded, not asked for 30 s" in told
    assert "• openai: not available\n" in f"{told}\n"
    assert "ollama" not in told
    assert "drop" in (await ask(ingress, "proposals", "U2")).lower()


async def test_a_direct_message_is_shown_only_to_its_person(ingress: Ingress) -> None:
    ingress.overview.talked = [RecentConversation(at("D0BOB"), NOW, 2, UserId("U1"))]
    mine, others = await ask(ingress, "sessions"), await ask(ingress, "sessions", "U2")

    assert "a direct message" in mine
    assert "2 questions, the last of <@U1>, 2026-04-07 14:35 UTC" in mine
    assert "D0BOB>" not in mine
    assert "• 1 more in places" in others
    assert "D0BOB" not in others


async def test_an_alerts_question_mentions_no_one(ingress: Ingress) -> None:
    ingress.overview.running = [RunningQuestion(at("C1"), MessageTs("100.1"), ALERTS, NOW)]
    ingress.overview.talked = [RecentConversation(at("C1"), NOW, 1, ALERTS)]

    assert "a question of an alert since" in await ask(ingress, "status")
    assert "1 question, the last of an alert," in await ask(ingress, "sessions")


async def test_an_unreadable_channel_is_hidden_with_a_notice(ingress: Ingress) -> None:
    ingress.overview.open = [card("C1")]
    ingress.api.answers["conversations.members"] = SurfaceFailed("ratelimited", retryable=True)
    told = await ask(ingress, "proposals")
    assert "1 more in places that you are not in, or that I could not check" in told
    assert "C1" not in told


async def test_a_database_outage_is_reported_in_each_part(ingress: Ingress) -> None:
    ingress.overview.broken = True
    told = await ask(ingress, "status")
    assert told.count(NOT_READ) == 2
    assert "Actions are not frozen." in told


async def test_an_idle_bot_is_reported_in_words(ingress: Ingress) -> None:
    assert await ask(ingress, "status") == (
        "*Under way*\n• no active or queued turns\n*Open proposals*\n• none is open\n"
        "Actions are not frozen.\n*Models*\n• all are available"
    )


async def test_hostile_names_and_very_many_rows_stay_lines(ingress: Ingress) -> None:
    ingress.overview.open = [
        replace(card("C1", "<!channel>\n• `x`"), product="<https://evil.test|ok>", card_ts=None)
        for _ in range(50)
    ]
    told = await ask(ingress, "proposals")
    assert "<!" not in told
    assert "<https://evil" not in told
    assert len(told.splitlines()) == SHOWN + 2
    assert f"• and {50 - SHOWN} more" in told


async def test_an_api_question_shows_no_place(ingress: Ingress) -> None:
    api = Place(TeamId("headless"), ChannelId("incident-x"), MessageTs("1.1"))
    ingress.overview.talked = [RecentConversation(api, NOW + timedelta(hours=1), 1, UserId("U1"))]
    assert "incident-x" not in await ask(ingress, "sessions")
