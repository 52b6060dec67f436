"""Actions as a model sees them, and what it asks people to confirm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Operation:
    """One action that may be proposed. `params_schema` is JSON Schema."""

    name: str
    description: str
    reversible: bool
    blast_radius: str
    params_schema: Mapping[str, JsonValue]


class Operations(Protocol):
    """The operator's catalogue of actions. Nothing behind this interface executes one."""

    def offered(self, product: str) -> Sequence[Operation]:
        """What may be proposed for the product, in the order declared."""
        ...


@dataclass(frozen=True, slots=True)
class ProposalDraft:
    """What a model asks people to confirm. Everything here is the model's word, not fact."""

    action: str
    product: str
    params: Mapping[str, JsonValue]
    rationale: str
    blast_radius: str = ""
    reversible: bool | None = None


@dataclass(frozen=True, slots=True)
class ProposalReceipt:
    """The model's receipt: stored, shown, waiting for a person.

    `posted` is False when the card could not be shown: stored, and shown as soon as possible.
    `stored` is False if no person can decide: checked, and shown to the asker, without a row.
    """

    proposal_id: str
    expires_at: datetime
    awaits: Sequence[str]  # the roles that may confirm, in words
    posted: bool = True
    stored: bool = True
