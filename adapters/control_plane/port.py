"""What the product asks of a control plane, and what it may answer. Values only, no I/O.

The HTTP implementation is `adapters.control_plane.client`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one action is carried out. `{product}` in a URL is replaced by the product.

    `credential_id` names a credential; its value is known to the adapter alone. `status_url`
    empty means that a lost answer cannot be asked for. `timeout_s` bounds one whole exchange.
    """

    url: str
    method: str = "POST"
    credential_id: str = ""
    status_url: str = ""
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class ControlOrder:
    """One confirmed action. `idempotency_key` is the proposal's id."""

    endpoint: Endpoint
    idempotency_key: str
    action: str
    product: str
    params: Mapping[str, JsonValue]
    confirmed_by: str
    dry_run: bool = False


class AnswerKind(StrEnum):
    """What is known after an exchange."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # the control plane said no
    NOT_SENT = "not_sent"  # no byte of the order left; nothing can have happened
    LOST = "lost"  # it may or may not have happened
    RUNNING = "running"  # the control plane has it and is not done


@dataclass(frozen=True, slots=True)
class ControlAnswer:
    """`words` are for people and hold no secret; `body` is the answer as received, not redacted."""

    kind: AnswerKind
    words: str
    status: int | None = None
    body: JsonValue = None


class ControlPlane(Protocol):
    """Carries out confirmed actions. Neither call raises anything but CancelledError."""

    async def send(self, order: ControlOrder) -> ControlAnswer:
        """Send the order once; never repeats it."""
        ...

    async def ask(self, order: ControlOrder) -> ControlAnswer:
        """What became of an order that may have been sent. LOST when there is nothing to ask."""
        ...
