"""What the asker's roles let a turn use, under `[policy.roles]`. Deny by default.

The roles are looked up once, when the turn begins or is taken up again; what cannot be looked up is
not held. A model is not shown what they do not give, and the runner asks here before each call.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from bot.domain.ids import Person
from bot.domain.roles import HeldRoles
from tools.admission import Authoriser
from tools.capabilities import CallContext
from tools.contract import ToolContract
from tools.policy import ToolPolicy

# Never raises: what fails is told as not read.
RolesOf: TypeAlias = Callable[[Person], Awaitable[HeldRoles]]
NOT_YOURS: Final = "none of the asker's roles may use this tool; say so, and use another one"


def authority(policy: ToolPolicy) -> Authoriser:
    """The runner's question, answered by the roles that the call's context carries."""

    async def authorise(contract: ToolContract, context: CallContext) -> str | None:
        return None if policy.permits(contract, context) else NOT_YOURS

    return authorise


def unread_notice(roles: Sequence[str]) -> str:
    """What people are told whose roles could not be looked up."""
    return (
        f"I could not check whether you are in the role {' or '.join(roles)}, so this answer uses "
        "only the tools that you may use without it"
    )
