"""A role as it is configured."""

from dataclasses import dataclass

from adapters.on_call.port import OnCall
from bot.domain.tenancy import HOME


@dataclass(frozen=True, slots=True)
class RoleMembers:
    """One `[roles.NAME]`: everyone in the user groups, the users named by id, who is on call.

    Their ids are of one workspace: a tenant's, or home.
    """

    usergroups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    on_call: OnCall | None = None
    workspace: str = HOME
