"""The home tab: made for the person who opens it, and nothing they may not do or see."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue

from bot.demo.workspace.block_rules import check_view
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.channel import ChannelRule
from bot.domain.roles import HeldRoles
from bot.ports.failures import StorageUnavailable, SurfaceFailed
from bot.slack.listeners.home import NOT_CHECKED, NOT_READ
from tests.fakes.role_table import RoleTable
from tests.slack_ingress import IDENTITY, Ingress, event
from tests.unit.bot.slack.listeners.test_status import SITE, card

RULES = (
    ChannelRule("incident-*", confirm=("responder",)),
    ChannelRule("acquisition-of-acme", confirm=("responder",)),
    ChannelRule("@direct"),
    ChannelRule("war-room", confirm=("lead",)),
)


@pytest.fixture
def ingress() -> Ingress:
    """U1 is an admin and a responder, U2 a responder, U9 no one."""
    made = Ingress()
    identity = replace(IDENTITY, site=SITE)
    made.settings = replace(made.settings, identity=identity, admin_roles=("lead",), channels=RULES)
    made.api.answers["conversations.info"] = {"channel": {"is_private": True}}
    made.api.answers["conversations.members"] = {"members": list[JsonValue](["U1", "U2"])}
    return made


async def opened(ingress: Ingress, user: str, event_id: str = "Ev1") -> str:
    """All that the tab shows, after Slack's own rules were held against it."""
    await ingress.send(
        event({"type": "app_home_opened", "user": user, "tab": "home"}, event_id=event_id)
    )
    sent: list[Any] = [given for method, given in ingress.api.calls if method == "views.publish"]
    assert sent[-1]["user_id"] == user
    check_view(sent[-1]["view"], "home")
    return json.dumps(sent[-1]["view"], ensure_ascii=False)


async def test_a_person_without_roles_sees_only_that(ingress: Ingress) -> None:
    ingress.overview.open = [card("C1", "drop-secret")]
    tab = await opened(ingress, "U9")

    assert "You cannot confirm proposals; the roles below can." in tab
    assert "in `#incident-*`: responder" in tab
    assert "in direct messages: no one; everyone can ask" in tab
    assert "2 more rules for single channels: ask me there" in tab
    assert "in any other channel: no one; everyone can ask" in tab
    assert "1 more in places that you are not in" in tab
    for hidden in ("acquisition", "war-room", "secret", "budget", "(admins)", "For admins", "$"):
        assert hidden not in tab.lower()
    assert ingress.memory.audit_log == []


async def test_a_responder_sees_their_channels_and_waiting_proposals(ingress: Ingress) -> None:
    ingress.overview.open = [card("C1")]
    tab = await opened(ingress, "U2")

    assert "You can confirm and reject proposals in `#incident-*`." in tab
    assert f"<{SITE}/archives/C1/p2002?thread_ts=100.1&cid=C1|its card>" in tab
    assert "For admins" not in tab


async def test_an_admin_sees_spending_and_models_and_is_audited_once(ingress: Ingress) -> None:
    ingress.switch.frozen, ingress.switch.by = True, "U0ADMIN"
    tab = await opened(ingress, "U1")
    await opened(ingress, "U1")

    assert "*For admins*" in tab
    assert "*Today (UTC)*: $0.0000" in tab
    assert "No provider is configured." in tab
    assert "`/kortex budget`" in tab
    assert "in `#war-room`: lead" in tab
    assert "🧊 Frozen" in tab
    (row,) = ingress.memory.audit_log
    assert (row.kind, row.body["command"]) == (AuditKind.ADMIN_COMMAND, "home")


class Unread(RoleTable):
    async def held(self, *_: object) -> HeldRoles:
        return HeldRoles(unread=("responder", "lead"))

    async def refusal(self, *_: object, **__: object) -> str:
        return "I could not check"


async def test_a_failed_lookup_is_reported_and_opens_nothing(ingress: Ingress) -> None:
    ingress.overview.broken = True
    object.__setattr__(ingress.ports, "roles", Unread(lead={"U1"}))
    tab = await opened(ingress, "U1")

    assert NOT_CHECKED in tab
    assert "not available now" in tab
    assert "For admins" not in tab
    assert "war-room" not in tab


class Full:
    async def append(self, _: AuditEvent) -> None:
        raise StorageUnavailable("full")


async def test_figures_that_cannot_be_audited_are_not_shown(ingress: Ingress) -> None:
    object.__setattr__(ingress.ports, "audit", Full())
    tab = await opened(ingress, "U1")
    assert NOT_READ in tab
    assert "$" not in tab


async def test_a_tab_that_slack_refuses_is_a_failed_task(ingress: Ingress) -> None:
    ingress.api.answers["views.publish"] = SurfaceFailed("internal_error", retryable=True)
    await opened(ingress, "U1")
    ingress.api.answers.pop("views.publish")
    assert "Kortex" in await opened(ingress, "U1", "Ev2")


async def test_very_many_rules_and_cards_still_fit_slacks_view(ingress: Ingress) -> None:
    rules = [ChannelRule(f"{'<' * 90}{n}*", confirm=("&" * 90,) * 5) for n in range(200)]
    ingress.settings = replace(ingress.settings, channels=rules)
    ingress.overview.open = [card("C1", "&" * 300) for _ in range(60)]
    await opened(ingress, "U1")
