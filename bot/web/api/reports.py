"""What admins read over HTTP: providers, budget, tools, what goes on, and the audit log with its verification."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import BaseModel, JsonValue

from bot.audit.verify import Summary
from bot.chat.budget_report import BudgetReport
from bot.ports.audit_log import AuditReader
from bot.ports.overview import Overview
from bot.web.api import models
from bot.web.api.caller_permissions import CallerPermissions
from bot.web.api.naming import Naming
from bot.web.api.operations import Call, Operation
from bot.web.api.spending import budget_model

PROVIDERS_PATH: Final = "/api/v1/llm/providers"
BUDGET_PATH: Final = "/api/v1/budget"
TOOLS_PATH: Final = "/api/v1/tools"
VERIFIED_S: Final = 60.0  # a million rows take seconds: one verification serves a minute

Report = Callable[[], Awaitable[JsonValue]]


class Verified:
    """The audit log's verification, at most once a minute in this process."""

    def __init__(
        self,
        verify: Callable[[], Awaitable[Summary]],
        now: Callable[[], datetime],
        clock: Callable[[], float],
    ) -> None:
        self._verify = verify
        self._now = now
        self._clock = clock
        self._lock = asyncio.Lock()
        self._kept: models.AuditState | None = None
        self._until = float("-inf")

    async def state(self) -> models.AuditState:
        """Raises StorageUnavailable."""
        async with self._lock:
            if self._kept is None or self._clock() >= self._until:
                self._kept = _state(await self._verify(), self._now())
                self._until = self._clock() + VERIFIED_S
            return self._kept


@dataclass(frozen=True, slots=True)
class Reports:
    """The dependencies of its operations. `providers` and `tools` match the commands' output."""

    permissions: CallerPermissions
    roles: Callable[[], Sequence[str]]
    providers: Report
    budget: Callable[[], Awaitable[BudgetReport]]
    tools: Report
    overview: Overview
    audit_reader: AuditReader
    verified: Verified
    naming: Naming

    async def me(self, call: Call) -> BaseModel:
        """Who calls, and which roles they hold now."""
        caller = call.caller
        held = await self.permissions.held(caller, self.roles())
        return models.Me(
            user=caller.person.user,
            team=caller.person.team,
            name=caller.name,
            kind=caller.kind.value,
            roles=sorted(held),
            is_admin=await self.permissions.is_admin(caller),
        )

    async def _providers(self, call: Call) -> BaseModel:
        await self.permissions.require_admin(call.caller, "providers")
        return models.Providers.model_validate({"providers": await self.providers()})

    async def _budget(self, call: Call) -> BaseModel:
        await self.permissions.require_admin(call.caller, "budget")
        return models.Budget.model_validate(await budget_model(await self.budget(), self.naming))

    async def _tools(self, call: Call) -> BaseModel:
        await self.permissions.require_admin(call.caller, "tools")
        return models.Tools.model_validate(await self.tools())

    async def _overview(self, call: Call) -> BaseModel:
        await self.permissions.require_admin(call.caller, "overview")
        page = call.query
        assert isinstance(page, models.Page)  # noqa: S101 - the operation's query
        talks = await self.overview.talks(page.limit)
        under_way = await self.overview.under_way(page.limit)
        at = [*(each.place for each in talks), *(each.place for each in under_way)]
        askers = [*(each.asker for each in talks), *(each.asker or "" for each in under_way)]
        places, people = await self.naming.channels(at), await self.naming.people(askers)
        return models.Overview(
            sessions=[
                models.Talk(
                    team=each.place.team,
                    channel=each.place.channel,
                    channel_name=places[each.place],
                    thread=each.place.thread_ts,
                    thread_url=self.naming.link(each.place, each.place.thread_ts),
                    asker=each.asker,
                    asker_name=people.get(each.asker, each.asker),
                    questions=each.questions,
                    active_at=each.active_at,
                )
                for each in talks
            ],
            under_way=[
                models.UnderWay(
                    team=each.place.team,
                    channel=each.place.channel,
                    channel_name=places[each.place],
                    thread=each.place.thread_ts,
                    thread_url=self.naming.link(each.place, each.place.thread_ts or each.ts),
                    asker=each.asker,
                    asker_name=people.get(each.asker or "", each.asker or ""),
                    since=each.since,
                )
                for each in under_way
            ],
        )

    async def _audit(self, call: Call) -> BaseModel:
        await self.permissions.require_admin(call.caller, "audit")
        page = call.query
        assert isinstance(page, models.AuditPage)  # noqa: S101 - the operation's query
        rows = await self.audit_reader.entries(
            after=page.after, session=page.session, limit=page.limit
        )
        entries: list[Mapping[str, JsonValue]] = [row.as_json() for row in rows]
        last = rows[-1].seq if rows else page.after
        return models.AuditEntries.model_validate({"entries": entries, "last_seq": last})

    async def _audit_state(self, call: Call) -> BaseModel:
        await self.permissions.require_admin(call.caller, "audit state")
        return await self.verified.state()

    def operations(self) -> Sequence[Operation]:
        """Under `/api/v1`."""
        page, rows = models.Page, models.AuditPage
        state, entries = models.AuditState, models.AuditEntries
        return (
            Operation("GET", "/api/v1/me", "whoAmI", "Who you are, and your roles", models.Me, self.me),
            Operation("GET", PROVIDERS_PATH, "providers", "The model providers", models.Providers, self._providers),
            Operation("GET", BUDGET_PATH, "budget", "What was spent today", models.Budget, self._budget),
            Operation("GET", TOOLS_PATH, "tools", "The tools and their state", models.Tools, self._tools),
            Operation("GET", "/api/v1/sessions", "overview", "Activity on every platform", models.Overview, self._overview, query=page),
            Operation("GET", "/api/v1/audit", "audit", "The audit log", entries, self._audit, query=rows),
            Operation("GET", "/api/v1/audit/state", "auditState", "Whether the audit log is valid", state, self._audit_state),
        )  # fmt: skip


def _state(found: Summary, at: datetime) -> models.AuditState:
    bad = found.bad
    return models.AuditState(
        ok=bad is None,
        rows=found.rows,
        head=found.head,
        first_bad_seq=bad.seq if bad else None,
        reason=bad.reason if bad else "",
        erased=found.erased,
        unkeyed=found.unkeyed,
        sealed=found.sealed,
        at=at,
    )
