"""Model prices and context sizes: a dated table with overrides.

An unknown model has no price, which differs from a price of zero.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from adapters.llm.port import Model, Price, Tier

# Bedrock's location prefix: "us.", "global.", an inference profile's ARN.
_PLACE: Final = re.compile(r"^(?:arn:.*/)?(?:(?:us|eu|apac|jp|au|ca|us-gov|global)\.)?")
# "-20251101", "-2025-08-07", "-latest", "-v1:0": snapshots of a model cost what the model costs.
_SNAPSHOT: Final = re.compile(r"(?:-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest))?(?:-v?\d+:\d+|-v\d+)?$")

Micros = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class ModelOverride:
    """An operator's settings of a model; None and empty keep the table's value."""

    price: Price | None = None
    context_tokens: int | None = None
    tier: Tier | None = None
    display_name: str = ""
    images: bool | None = None
    api: str = ""  # which of a provider's interfaces to use, where it has several


class ModelRow(BaseModel):
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
    # More input than this raises the price of the whole request by these percentages.
    long_from: Annotated[int, Field(ge=0)] = 0
    long_input_pct: Annotated[int, Field(ge=100)] = 100
    long_output_pct: Annotated[int, Field(ge=100)] = 100
    images: bool = True  # whether it accepts images; not assumed without a row
    listed: bool = True  # offered for selection; False: only priced

    @property
    def price(self) -> Price:
        usual = Price(self.input, self.cache_read, self.cache_write, self.output)
        if not self.long_from:
            return usual
        above = Price(
            self.input * self.long_input_pct // 100,
            self.cache_read * self.long_input_pct // 100,
            self.cache_write * self.long_input_pct // 100,
            self.output * self.long_output_pct // 100,
        )
        return replace(usual, above_tokens=self.long_from, above=above)


class ModelTable:
    """The rows of one provider, overridden by the operator's settings."""

    def __init__(
        self, rows: Iterable[ModelRow], overrides: Mapping[str, ModelOverride] | None = None
    ) -> None:
        self._rows: dict[str, list[ModelRow]] = {}
        for row in sorted(rows, key=lambda row: row.valid_from):
            self._rows.setdefault(row.model, []).append(row)
        self._overrides = dict(overrides or {})

    def price_of(self, model: str, on: date | None = None) -> Price | None:
        """The list price of a model on a day (default: today, UTC); None is unknown."""
        own = self.own(model).price
        row = self.row(model, on)
        return own or (row.price if row else None)

    def context_tokens(self, model: str, otherwise: int) -> int:
        """The context size; `otherwise` if unknown."""
        row = self.row(model)
        return self.own(model).context_tokens or (row.context_tokens if row else otherwise)

    def sees_images(self, model: str) -> bool:
        """Whether the model accepts images; an unknown model does not."""
        own, row = self.own(model).images, self.row(model)
        return own if own is not None else row is not None and row.images

    def row(self, model: str, on: date | None = None) -> ModelRow | None:
        """The newest row of a model, or of the model it is a snapshot of, valid on a day."""
        day = on or datetime.now(UTC).date()
        rows = self._rows.get(model) or self._rows.get(_plain(model)) or []
        return next((row for row in reversed(rows) if row.valid_from <= day), None)

    def models(self, first: Sequence[str], context_tokens: int) -> Sequence[Model]:
        """The models to offer: the configured ones first, then the table's.

        `context_tokens` is assumed for an unknown configured model.
        """
        listed = [name for name, rows in self._rows.items() if rows[-1].listed]
        names = dict.fromkeys([*(name for name in first if name), *listed])
        return tuple(self._model(name, context_tokens) for name in names)

    def own(self, model: str) -> ModelOverride:
        if not self._overrides:
            return _NOTHING
        return self._overrides.get(model) or self._overrides.get(_plain(model)) or _NOTHING

    def _model(self, name: str, otherwise: int) -> Model:
        own, row = self.own(name), self.row(name)
        display = own.display_name or (row.display_name if row else "") or name
        tier = own.tier or (row.tier if row else Tier.BALANCED)
        return Model(name, display, self.context_tokens(name, otherwise), tier)


_NOTHING: Final = ModelOverride()


@lru_cache(maxsize=256)
def _plain(model: str) -> str:
    return _SNAPSHOT.sub("", _PLACE.sub("", model))


def _shipped() -> tuple[ModelRow, ...]:
    text = files("adapters.llm").joinpath("models.toml").read_text(encoding="utf-8")
    return tuple(ModelRow.model_validate(row) for row in tomllib.loads(text)["model"])


# Read once at import: providers may be made while the event loop runs.
_SHIPPED: Final = _shipped()


def model_table(provider: str, overrides: Mapping[str, ModelOverride] | None = None) -> ModelTable:
    """The shipped rows of a provider, with an operator's overrides."""
    return ModelTable((row for row in _SHIPPED if row.provider == provider), overrides)
