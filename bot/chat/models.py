"""Which models of a provider may answer a round, in which order, and what each holds and costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from adapters.llm.port import Price, Provider
from bot.domain.budget import NO_MODEL

NEED_MORE_CONTEXT = "<need_more_context/>"
_FRUGAL = f"""

You are the fast model, asked first to save money. If you cannot answer this well, answer with
{NEED_MORE_CONTEXT} and nothing else: a stronger model then takes over."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """`id` as requests name it, empty for the provider's own; `window_tokens` bounds in and out."""

    id: str
    window_tokens: int
    priced_as: str = ""  # the name in the price table, where `id` is empty

    def price(self, provider: Provider) -> Price | None:
        """The list price; None is unknown."""
        return provider.price_of(self.id or self.priced_as)


@dataclass(frozen=True, slots=True)
class Choice:
    """A provider's configured model, and its fast one where one is configured."""

    full: KnownModel
    fast: KnownModel | None = None


@dataclass(frozen=True, slots=True)
class Models:
    """The choices of every configured provider. `frugal`: the fast model is asked first."""

    choices: Mapping[str, Choice] = field(default_factory=dict)
    frugal: bool = False

    def of(self, provider: Provider) -> Choice:
        """What is known of a provider's models."""
        unknown = Choice(KnownModel("", provider.max_context_tokens))
        return self.choices.get(provider.name, unknown)

    def in_order(self, provider: Provider, *, full: bool) -> Sequence[KnownModel]:
        """Those to try, the next one only where money or a rate limit did not allow the one before.

        `full`: the turn has already turned to the full models.
        """
        choice = self.of(provider)
        if choice.fast is None:
            return (choice.full,)
        frugal = self.frugal and not full
        return (choice.fast, choice.full) if frugal else (choice.full, choice.fast)

    def window_tokens(self, provider: Provider) -> int:
        """Of the model that is asked first."""
        return self.in_order(provider, full=False)[0].window_tokens

    def is_trial(self, provider: Provider, model: KnownModel, *, full: bool) -> bool:
        """Whether that model is only asked first, and may pass the question on."""
        return self.frugal and not full and model == self.of(provider).fast


def uses_model(provider: Provider) -> bool:
    """Whether limits hold for it at all."""
    return provider.name != NO_MODEL


def frugal_system(system: str) -> str:
    """The system text with the way out that a fast model has."""
    return system + _FRUGAL
