"""What a caller may: which sessions and proposals they see, where they may ask, and whether they are an admin.

Everything is asked now, of the workspace or the tokens that know the caller. What cannot be looked up is
not held.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import JsonValue

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.callers import Caller
from bot.domain.channel import ChannelRule
from bot.domain.chats import ChatSession
from bot.domain.proposal import Proposal
from bot.ports.audit_log import AuditLog
from bot.ports.platform import RoleDirectory
from bot.web.api.callers import Denied
from tools.policy import fits_channel


@dataclass(frozen=True, slots=True)
class CallerPermissions:
    """`roles` know every person and service. The sequences are the current ones.

    `is_ours`: a proposal of the home workspace or of a conversation over HTTP. Another workspace's
    can be neither seen nor decided here.
    """

    roles: RoleDirectory
    rules: Sequence[ChannelRule]
    admin_roles: Sequence[str]
    is_ours: Callable[[Proposal], bool]
    audit: AuditLog

    async def held(self, caller: Caller, roles: Sequence[str]) -> frozenset[str]:
        if caller.is_operator or not roles:
            return frozenset()
        return (await self.roles.held(caller.person, list(dict.fromkeys(roles)))).held

    async def is_admin(self, caller: Caller) -> bool:
        return caller.is_operator or bool(await self.held(caller, self.admin_roles))

    async def require_admin(self, caller: Caller, what: str) -> None:
        """Raises Denied unless they are; that they read it is on record first."""
        if not await self.is_admin(caller):
            raise Denied(403, "forbidden", "This is for admins: one of the roles of [admins].")
        await self.record(caller, what)

    async def record(self, caller: Caller, what: str) -> None:
        """Record an admin's read of other people's data, once an hour: pages poll every few
        seconds.
        """
        user, hour = caller.person.user, datetime.now(UTC).strftime("%Y-%m-%dT%H")
        body: dict[str, JsonValue] = {"command": f"read {what}", "over": "http"}
        key = f"api.read:{user}:{what}:{hour}"
        await self.audit.append(AuditEvent(AuditKind.ADMIN_COMMAND, user, body, key=key))

    async def require_ask(self, caller: Caller, channel: str) -> None:
        """Raises Denied where no rule matches the channel, or the caller holds none of its roles."""
        rule = next((each for each in self.rules if fits_channel(channel, each.match)), None)
        if rule is None:
            why = "No rule of [[channels]] matches this channel name, so no one can ask there."
            raise Denied(403, "no_such_channel", why)
        if caller.is_operator:
            return
        wanted = (*(rule.ask or rule.confirm), *self.admin_roles)
        if not await self.held(caller, wanted):
            why = (
                "You have no role that can ask in this channel over HTTP. An admin can create a token "
                "with such a role: `kortex token create --help`."
            )
            raise Denied(403, "forbidden", why)

    async def may_read(self, caller: Caller, session: ChatSession) -> bool:
        """Its own caller, and admins."""
        return session.owner == caller.person or await self.is_admin(caller)

    async def visible(self, caller: Caller, rows: Sequence[Proposal]) -> Sequence[Proposal]:
        """Of proposals: the caller's own, those they may decide on, and for admins all."""
        rows = [row for row in rows if self.is_ours(row)]
        if not rows or await self.is_admin(caller):
            return rows
        held = await self.held(caller, [role for row in rows for role in row.confirm_roles])
        return [
            row
            for row in rows
            if row.asked_by == caller.person or held.intersection(row.confirm_roles)
        ]
