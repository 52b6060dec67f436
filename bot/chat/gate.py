"""What stands between a round and a provider: which model, with what of the conversation, and may it.

`OpenGate` lets everything pass; `bot.chat.till` holds rounds to the budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from adapters.llm.messages import CompleteRequest, DoneChunk, ErrorChunk
from adapters.llm.port import Provider
from bot.chat.models import KnownModel


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request as that model gets it. `trial`: it may pass the question on to the full model."""

    request: CompleteRequest
    notices: tuple[str, ...] = ()
    trial: bool = False


@dataclass(frozen=True, slots=True)
class NotAdmitted:
    """A limit is in the way; `reason` in words for people."""

    reason: str


class Gate(Protocol):
    """One round's. Raises StorageUnavailable when it cannot be known whether money is left."""

    def models(self, provider: Provider) -> Sequence[KnownModel]:
        """In the order in which they are tried while money does not allow them."""
        ...

    async def admit(
        self, provider: Provider, model: KnownModel, request: CompleteRequest
    ) -> Admitted | NotAdmitted:
        """Hold the worst case of asking that model, or say why not."""
        ...

    def note(
        self,
        provider: Provider,
        model: KnownModel,
        end: DoneChunk | ErrorChunk | None,
        *,
        answered: bool,
    ) -> None:
        """The request is over. `answered`: something came back, so it is billed whatever it says."""
        ...


class OpenGate:
    """The configured model, unlimited, and nothing is counted."""

    def models(self, provider: Provider) -> Sequence[KnownModel]:
        """The provider's own."""
        return (KnownModel("", provider.max_context_tokens),)

    async def admit(
        self,
        provider: Provider,  # noqa: ARG002 - the port's
        model: KnownModel,  # noqa: ARG002 - the port's
        request: CompleteRequest,
    ) -> Admitted | NotAdmitted:
        """Always."""
        return Admitted(request)

    def note(
        self,
        provider: Provider,
        model: KnownModel,
        end: DoneChunk | ErrorChunk | None,
        *,
        answered: bool,
    ) -> None:
        """Nothing to count."""
