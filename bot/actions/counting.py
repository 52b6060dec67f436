"""Telling whoever counts that a proposal came into a state. About right: a crash may repeat one."""

from collections.abc import Callable
from typing import TypeAlias

from bot.domain.proposal import ProposalState

OnState: TypeAlias = Callable[[ProposalState], None]


def uncounted(_state: ProposalState) -> None:
    """For where no metrics are kept."""
