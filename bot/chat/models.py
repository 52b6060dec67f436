"""Which models of a provider may answer a round, in which order, and a fast model's try.

The way out that a fast model was given is never shown, and decides who answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from adapters.llm.messages import StopReason
from adapters.llm.port import Price, Provider
from bot.chat.round_record import RoundRecord
from bot.domain.budget import NO_MODEL
from bot.domain.turn_events import RoundReplaced, TextDelta, TurnEvent

NEED_MORE_CONTEXT = "<need_more_context/>"
_FRUGAL = f"""

You are the fast model, asked first to save money. If you cannot answer this well, answer with
{NEED_MORE_CONTEXT} and nothing else: a stronger model then takes over."""


TURNED_DOWN = "it asked for a stronger one"
CUT_OFF = "its answer did not fit"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """`id` as requests name it, empty for the provider's own; `window_tokens` bounds in and out."""

    id: str
    window_tokens: int
    priced_as: str = ""  # the name in the price table, where `id` is empty
    sees_images: bool = False

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
        return self.in_order(provider, full=False)[0].window_tokens

    def is_trial(self, provider: Provider, model: KnownModel, *, full: bool) -> bool:
        """Whether that model is only asked first, and may pass the question on."""
        return self.frugal and not full and model == self.of(provider).fast


def uses_model(provider: Provider) -> bool:
    return provider.name != NO_MODEL


def frugal_system(system: str) -> str:
    """The system text with the way out that a fast model has."""
    return system + _FRUGAL


class MarkerFilter:
    """Passes events on; text that may still become the marker waits until it cannot."""

    def __init__(self, marker: str, emit: Callable[[TurnEvent], None]) -> None:
        self._marker = marker
        self._emit = emit
        self._held = ""

    def __call__(self, event: TurnEvent) -> None:
        if not isinstance(event, TextDelta):
            if isinstance(event, RoundReplaced):
                self._held = ""
            self._emit(event)
            return
        text = self._held + event.text
        whole = text.replace(self._marker, "")
        keep = next(
            (n for n in range(len(self._marker) - 1, 0, -1) if self._marker.startswith(whole[-n:])),
            0,
        )
        keep = min(keep, len(whole))
        self._held = whole[len(whole) - keep :]
        if shown := whole[: len(whole) - keep]:
            self._emit(TextDelta(shown))

    def flush(self) -> None:
        """The text is over: what waited was no marker."""
        if self._held:
            self._emit(TextDelta(self._held))
            self._held = ""


def passed_on(record: RoundRecord) -> RoundRecord:
    """The record of a fast model's round, marked when the full model has to answer instead."""
    if record.error is not None or record.stopped:
        return record
    if NEED_MORE_CONTEXT in record.text:
        why = TURNED_DOWN
    elif record.stop_reason is StopReason.MAX_TOKENS:
        why = CUT_OFF
    else:
        return record
    notice = (
        f"frugal: asked {record.model or 'the fast model'} first, {why}; the full model answers"
    )
    return replace(record, passed_on=True, tool_calls=(), notices=(*record.notices, notice))
