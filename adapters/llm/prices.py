"""What models cost and how much they hold: a dated table that operators can override.

An unknown model has no price, which is not the same as a price of zero.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from importlib.resources import files
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from adapters.llm.port import Cost, Model, Tier

# "-20251101", "-2025-08-07", "-latest": snapshots of a model cost what the model costs.
_SNAPSHOT: Final = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")

Micros = Annotated[int, Field(ge=0)]


class PriceRow(BaseModel):
    """One model from one day on. Prices are micro-dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: str
    model: str
    display_name: str = ""
    valid_from: date = date.min
    tier: Tier = Tier.BALANCED
    context_tokens: Annotated[int, Field(gt=0)]
    input: Micros
    cache_read: Micros
    cache_write: Micros
    output: Micros
    listed: bool = True  # offered for selection; False: only priced

    @property
    def cost(self) -> Cost:
        """The price by bucket."""
        return Cost(self.input, self.cache_read, self.cache_write, self.output)


class _Override(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Micros
    cache_read: Micros
    cache_write: Micros
    output: Micros


_OVERRIDES: Final = TypeAdapter(dict[str, _Override])


class Prices:
    """The rows of one provider, and the operator's own prices, which win."""

    def __init__(
        self, rows: Iterable[PriceRow], overrides: Mapping[str, Cost] | None = None
    ) -> None:
        self._rows: dict[str, list[PriceRow]] = {}
        for row in sorted(rows, key=lambda row: row.valid_from):
            self._rows.setdefault(row.model, []).append(row)
        self._overrides = dict(overrides or {})

    def cost(self, model: str, on: date | None = None) -> Cost | None:
        """The list price of a model on a day (default: today, UTC); None is unknown."""
        own = self._overrides.get(model)
        row = self.row(model, on)
        return own or (row.cost if row else None)

    def row(self, model: str, on: date | None = None) -> PriceRow | None:
        """The newest row of a model, or of the model it is a snapshot of, valid on a day."""
        day = on or datetime.now(UTC).date()
        rows = self._rows.get(model) or self._rows.get(_SNAPSHOT.sub("", model)) or []
        return next((row for row in reversed(rows) if row.valid_from <= day), None)

    def models(self, first: Sequence[str], context_tokens: int) -> Sequence[Model]:
        """The models to offer: the configured ones first, then the table's.

        `context_tokens` is assumed for a configured model that the table does not know.
        """
        listed = [name for name, rows in self._rows.items() if rows[-1].listed]
        names = dict.fromkeys([*(name for name in first if name), *listed])
        return tuple(self._model(name, context_tokens) for name in names)

    def _model(self, name: str, context_tokens: int) -> Model:
        row = self.row(name)
        if row is None:
            return Model(name, name, context_tokens)
        return Model(name, row.display_name or name, row.context_tokens, row.tier)


def _shipped() -> tuple[PriceRow, ...]:
    text = files("adapters.llm").joinpath("prices.toml").read_text(encoding="utf-8")
    return tuple(PriceRow.model_validate(row) for row in tomllib.loads(text)["price"])


# Read once at import: providers may be made while the event loop runs.
_SHIPPED: Final = _shipped()


def prices_of(provider: str, overrides: JsonValue = None) -> Prices:
    """The shipped table of a provider, with an operator's `{model: {input, cache_read,
    cache_write, output}}` on top.

    Raises ValueError when the override does not have that shape.
    """
    own = {
        model: Cost(row.input, row.cache_read, row.cache_write, row.output)
        for model, row in _OVERRIDES.validate_python(overrides or {}).items()
    }
    return Prices((row for row in _SHIPPED if row.provider == provider), own)
