"""One round's share of the budget: which model may be asked, with what of the conversation, and what
that cost. The worst case is reserved before a request, the charge is counted after it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

from adapters.llm.first_look.calls import is_look
from adapters.llm.first_look.digest import as_read
from adapters.llm.messages import CompleteRequest, DoneChunk, ErrorChunk, Usage
from adapters.llm.port import Price, Provider
from bot.chat.attachments import as_seen
from bot.chat.models import KnownModel, Models, frugal_system, uses_model
from bot.chat.window import IMAGE_TOKENS, fit, room_tokens, tool_bytes, utf8_bytes
from bot.domain.budget import ASSUMED_PRICE, BudgetLimits, Refusal, refusal_words
from bot.ports.ledger import Ledger, Reservation

# Vendors put instructions of their own before tools; Anthropic's are 264 to 804 tokens by its page
# on tool use.
_VENDOR_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class Charge:
    """What one provider charges for a round. `cost` None is unknown; `counted` is never."""

    model: str
    usage: Usage
    cost_usd_micros: int | None
    counted_usd_micros: int

    def __add__(self, other: "Charge") -> "Charge":
        known = (self.cost_usd_micros, other.cost_usd_micros)
        return Charge(
            other.model,
            self.usage + other.usage,
            None if None in known else sum(c for c in known if c is not None),
            self.counted_usd_micros + other.counted_usd_micros,
        )


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


@dataclass(slots=True, eq=False, repr=False)
class RoundBudget:
    """`charges`, by provider, and `refusals` are what came of the round."""

    ledger: Ledger
    limits: BudgetLimits
    models: Models
    who: Reservation
    _: KW_ONLY
    full: bool
    _worst: int = field(init=False, default=0)
    _sent_tokens: int = field(init=False, default=0)
    charges: dict[str, Charge] = field(init=False, default_factory=dict)
    refusals: list[Refusal] = field(init=False, default_factory=list)
    holds: bool = field(init=False, default=False)

    @property
    def cost_usd_micros(self) -> int | None:
        """What all of the round cost, failed providers included; None is unknown."""
        costs = [charge.cost_usd_micros for charge in self.charges.values()]
        return None if None in costs else sum(c for c in costs if c is not None)

    def candidates(self, provider: Provider) -> Sequence[KnownModel]:
        """In the order in which they are tried while the limits do not allow them."""
        return self.models.in_order(provider, full=self.full)

    async def admit(
        self, provider: Provider, model: KnownModel, request: CompleteRequest
    ) -> Admitted | NotAdmitted:
        """Reserve the worst case of asking that model, or say why not.

        A model reads a first look's digest. The request is made to fit its window before. Raises
        StorageUnavailable when it cannot be known whether money is left.
        """
        if uses_model(provider) and any(map(is_look, request.messages)):
            # Tens of milliseconds for results of hundreds of kilobytes: not on the loop.
            request = await asyncio.to_thread(as_read, request)
        request, looked = as_seen(request, provider, model)
        trial = self.models.is_trial(provider, model, full=self.full)
        system = frugal_system(request.system) if trial else request.system
        messages, note = fit(request.messages, system, room_tokens(model.window_tokens, request))
        fitted = replace(request, model=model.id, system=system, messages=messages)
        refusal = await self._reserve(provider, model, fitted)
        if refusal is not None:
            self.refusals.append(refusal)
            return NotAdmitted(refusal_words(refusal))
        return Admitted(fitted, (*looked, *([note] if note else [])), trial)

    async def _reserve(
        self, provider: Provider, model: KnownModel, request: CompleteRequest
    ) -> Refusal | None:
        if not (self.limits.any_set and uses_model(provider)):
            return None
        tokens = min(most_tokens(request), model.window_tokens)
        self._sent_tokens = tokens
        price = model.price(provider) or ASSUMED_PRICE
        self._worst = price.worst_case_usd_micros(tokens, request.max_tokens)
        charged = self.charges.values()
        wanted = replace(
            self.who,
            usd_micros=self._worst + sum(b.counted_usd_micros for b in charged),
            tokens=tokens
            + request.max_tokens
            + sum(b.usage.input + b.usage.output for b in charged),
        )
        refusal = await self.ledger.reserve(wanted, self.limits)
        self.holds = self.holds or refusal is None
        return refusal

    def note(
        self,
        provider: Provider,
        model: KnownModel,
        end: DoneChunk | ErrorChunk | None,
        *,
        answered: bool,
    ) -> None:
        """Record the end of the request. `answered`: something came back, so it is billed.

        An unknown amount counts at its worst case. For an answer that broke off before its first
        word, that is the sent part.
        """
        usage = _usage(end)
        began = isinstance(end, ErrorChunk) and end.began
        if usage is None and not answered and not began:
            return
        named = end.model if isinstance(end, DoneChunk) else ""
        price = KnownModel(named, 0).price(provider) if named else None
        price = price or model.price(provider)
        if isinstance(end, DoneChunk) and not end.at_list_price and not (price and price.is_free):
            price = None  # an unknown surcharge
        charge = Charge(
            named or model.id or model.priced_as,
            usage or Usage(),
            _cost(price, usage),
            self._counted(price, usage, answered=answered),
        )
        before = self.charges.get(provider.name)
        self.charges[provider.name] = before + charge if before else charge

    def _counted(self, price: Price | None, usage: Usage | None, *, answered: bool) -> int:
        if usage is None and answered:
            return 0 if price is not None and price.is_free else self._worst
        usage = usage or Usage(input_uncached=self._sent_tokens)
        return _cost(price or ASSUMED_PRICE, usage) or 0


def most_tokens(request: CompleteRequest) -> int:
    """A bound of the input: no tokenizer makes more than one token of a byte."""
    size = utf8_bytes(request.system)
    for message in request.messages:
        size += utf8_bytes(message.text) + utf8_bytes(message.told)
        size += IMAGE_TOKENS * len(message.images)
        if (result := message.tool_result) is not None:
            size += utf8_bytes(result.content)
        for call in message.tool_calls:
            size += utf8_bytes(call.arguments) + len(call.name)
        for block in message.provider_blocks:
            size += utf8_bytes(block)
    return size + tool_bytes(request) + _VENDOR_TOKENS


def _usage(end: DoneChunk | ErrorChunk | None) -> Usage | None:
    if isinstance(end, DoneChunk):
        return end.usage if end.usage_known else None
    return end.usage if end else None


def _cost(price: Price | None, usage: Usage | None) -> int | None:
    if price is None:
        return None
    if usage is None:
        return 0 if price.is_free else None
    return price.cost_usd_micros(usage)
