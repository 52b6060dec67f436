"""Money around a round: the day's limit, one row a round, and nothing bought twice."""

import tomllib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.llm import model_table
from adapters.llm.messages import (
    TOOLS_EMULATED,
    CompleteRequest,
    DoneChunk,
    ErrorChunk,
    ErrorKind,
    StopReason,
    StreamChunk,
    TextChunk,
    Usage,
)
from adapters.llm.port import Price, Provider
from bot.chat.models import Choice, KnownModel, Models
from bot.chat.rounds import Rounds
from bot.chat.stopping import Signal
from bot.chat.turn_budget import Budget, Tenants, TurnBudget
from bot.domain.audit import AuditKind
from bot.domain.budget import ASSUMED_PRICE, BudgetLimits, Limit, Refusal, refusal_words
from bot.domain.ids import ChannelId, SessionId, TeamId, UserId
from bot.domain.session import Ask
from bot.domain.turn_events import Notice, TextDelta, TurnEvent
from bot.ports.failures import StorageUnavailable
from bot.telemetry.metrics import Metrics
from tests.fakes.scripted_provider import PAID, ScriptedProvider, text
from tests.fakes.stores import Memory, MemoryAudit, MemoryLedger
from tests.fixtures_turn import ASK, LATER, Outage

PRICES = Path(model_table.__file__).with_name("models.toml")
REQUEST = CompleteRequest(system="s", messages=(), max_tokens=100)
# PAID in its dearest input bucket, one byte and a vendor's 1,024 tokens, and 100 tokens of output.
WORST = -(-(3_750_000 * 1025 + 15_000_000 * 100) // 1_000_000)
COST = 450  # of a round of `text`


class Bench:
    """The budget over memory, and one turn's."""

    def __init__(
        self, *providers: Provider, models: Models | None = None, channel: int = 0, **limits: int
    ) -> None:
        self.memory = Memory()
        self.rows = MemoryLedger(self.memory)
        self.ledger = Outage(self.rows)
        self.metrics = Metrics()
        self.events: list[TurnEvent] = []
        self.channel = channel
        audit = MemoryAudit(self.memory)
        self.all = Budget(
            Rounds(providers),
            self.ledger,
            audit,
            BudgetLimits(**limits),
            self.metrics,
            models or Models(),
        )
        self.budget: TurnBudget = self.of(ASK)

    def of(self, ask: Ask, session: str = "s1") -> TurnBudget:
        return self.all.for_turn(ask, SessionId(session), "investigate", Signal(), self.channel)

    async def round(  # type: ignore[no-untyped-def]
        self, number: int = 1, budget: TurnBudget | None = None, request: CompleteRequest = REQUEST
    ):
        asking = budget or self.budget
        return await asking.round(request, number, self.events.append, "")


async def test_a_round_is_one_row_with_its_price_and_one_audit_row() -> None:
    bench = Bench(ScriptedProvider([text("x", usage=Usage(100, 50, 20, 10))], "a", price=PAID))

    record = await bench.round()

    ((_, spending),) = bench.rows.rows.values()
    assert spending.cost_usd_micros == record.cost_usd_micros == 100 * 3 + 15 + 75 + 10 * 15
    assert (spending.turn_id, spending.round, spending.provider) == (ASK.turn_id, 1, "a")
    (row,) = bench.memory.audit_log
    assert (row.kind, row.body["cost_usd_micros"]) == (AuditKind.MODEL_CALL, 540)
    assert (
        bench.metrics.registry.get_sample_value("kortex_spent_usd_micros_total", {"provider": "a"})
        == 540
    )


async def test_an_unknown_price_is_stored_as_unknown() -> None:
    bench = Bench(ScriptedProvider([text("x")], price=None))

    await bench.round()

    ((_, spending),) = bench.rows.rows.values()
    assert spending.cost_usd_micros is None


async def test_an_unanswered_round_costs_nothing_and_has_no_row() -> None:
    bench = Bench(ScriptedProvider([[ErrorChunk(ErrorKind.AUTH, "401")]]))

    record = await bench.round()

    assert record.error is ErrorKind.AUTH
    assert (bench.rows.rows, bench.memory.audit_log) == ({}, [])


async def test_a_round_over_the_budget_goes_to_a_free_provider() -> None:
    paid = ScriptedProvider([text("dear")], "paid", price=PAID)
    free = ScriptedProvider([text("free")], "free")
    bench = Bench(paid, free, daily_usd_micros=WORST + COST - 1)

    first, second = await bench.round(1), await bench.round(2)

    assert (first.provider, second.provider) == ("paid", "free")
    assert (first.notices, second.notices) == ((), (DAILY,))
    assert Notice(DAILY) in bench.events
    refused = [e for e in bench.memory.audit_log if e.kind is AuditKind.BUDGET_REFUSED]
    assert [(e.body["round"], e.body["limit"]) for e in refused] == [(2, "daily")]


def _too_dear(most: int, spent: int) -> str:
    return refusal_words(Refusal(Limit.DAILY, most, spent, held=0, wanted=WORST))


DAILY = _too_dear(WORST + COST - 1, spent=COST)


async def test_the_unspent_part_of_a_reservation_is_released() -> None:
    bench = Bench(ScriptedProvider([text("dear")], price=PAID), daily_usd_micros=WORST + COST)

    await bench.round(1)
    second = await bench.round(2)

    assert second.provider == "scripted"
    assert bench.rows.held == {}
    assert (await bench.rows.today()).used_usd_micros == 2 * COST


async def test_without_a_free_provider_a_spent_budget_is_the_reason() -> None:
    bench = Bench(ScriptedProvider([text("dear")], price=PAID), daily_usd_micros=WORST - 1)

    record = await bench.round(1)

    assert (record.out_of_budget, record.provider) == (True, "")
    assert bench.rows.held == {}


async def test_a_channel_has_its_own_limit() -> None:
    bench = Bench(ScriptedProvider([text("dear")], price=PAID), channel=WORST)
    elsewhere = replace(ASK, place=replace(ASK.place, channel=ChannelId("C2")))

    first = await bench.round(1)
    second = await bench.round(2)
    other = await bench.round(1, bench.of(elsewhere, "s2"))

    assert [r.provider for r in (first, second, other)] == ["scripted", "", "scripted"]
    assert "this channel's budget for today" in second.notices[0]


async def test_a_person_has_an_hourly_limit_of_questions_with_any_number_of_rounds() -> None:
    model, triage = ScriptedProvider([text("x")], "local"), ScriptedProvider([text("t")], "triage")
    bench = Bench(model, triage, user_hourly_questions=1)
    colleague = replace(LATER, asker=replace(LATER.asker, user=UserId("U2")))

    first = [await bench.round(number) for number in (1, 2)]
    second = await bench.round(1, bench.of(LATER))
    other = await bench.round(1, bench.of(colleague))

    assert [r.provider for r in (*first, second, other)] == ["local", "local", "triage", "local"]
    assert "you asked 1 question this hour" in second.notices[0]


async def test_a_thread_over_its_token_limit_uses_no_model() -> None:
    model, triage = ScriptedProvider([text("x")], "local"), ScriptedProvider([text("t")], "triage")
    bench = Bench(model, triage, session_tokens=1125 + 110)

    got = [(await bench.round(number)).provider for number in (1, 2, 3)]
    other = await bench.round(1, bench.of(LATER, "s2"))

    assert (got, other.provider) == (["local", "local", "triage"], "local")


@pytest.mark.parametrize("price", [None, PAID])
async def test_a_round_with_unknown_usage_counts_its_worst_case(price: Price | None) -> None:
    cut: list[StreamChunk] = [TextChunk("half"), ErrorChunk(ErrorKind.CUT, "cut")]
    bench = Bench(ScriptedProvider([cut], price=price), daily_usd_micros=10_000_000)

    record = await bench.round()

    today = await bench.rows.today()
    assert record.cost_usd_micros is None
    assert today.spent_usd_micros == 0
    assert today.used_usd_micros >= WORST


async def test_an_unknown_price_counts_as_the_highest_known() -> None:
    bench = Bench(ScriptedProvider([text("x")], price=None), daily_usd_micros=10_000_000)

    await bench.round()

    today = await bench.rows.today()
    assert (today.spent_usd_micros, today.used_usd_micros) == (0, 100 * 11 + 10 * 55)


async def test_a_round_outside_the_list_price_has_an_unknown_cost() -> None:
    end = DoneChunk(StopReason.END_TURN, Usage(100, 0, 0, 10), "m", at_list_price=False)
    bench = Bench(
        ScriptedProvider([[TextChunk("x"), end]], price=PAID), daily_usd_micros=10_000_000
    )

    record = await bench.round()

    ((_, spending),) = bench.rows.rows.values()
    assert (record.cost_usd_micros, spending.cost_usd_micros) == (None, None)
    assert (await bench.rows.today()).used_usd_micros == 100 * 11 + 10 * 55


def test_no_shipped_price_exceeds_the_assumed_one() -> None:
    rows = tomllib.loads(PRICES.read_text(encoding="utf-8"))["model"]

    assert max(r["output"] for r in rows) <= ASSUMED_PRICE.output
    assert max(max(r["input"], r["cache_write"]) for r in rows) <= ASSUMED_PRICE.cache_write


async def test_a_billed_failure_of_a_provider_has_its_own_row() -> None:
    billed = [ErrorChunk(ErrorKind.REFUSED, "no", usage=Usage(100, 0, 0, 0))]
    bench = Bench(
        ScriptedProvider([billed], "a", price=PAID),
        ScriptedProvider([text("x")], "b", price=PAID),
        daily_usd_micros=1_000_000,
    )

    record = await bench.round()

    costs = {s.provider: s.cost_usd_micros for _, s in bench.rows.rows.values()}
    assert (costs, record.cost_usd_micros) == ({"a": 300, "b": COST}, 300 + COST)
    assert bench.rows.held == {}


FAST = Models({"scripted": Choice(KnownModel("", 100_000), KnownModel("small", 100_000))})


class Priced(ScriptedProvider):
    """The fast model costs a tenth."""

    def price_of(self, model: str) -> Price | None:
        tenth = Price(300_000, 30_000, 375_000, 1_500_000)
        return tenth if model == "small" else PAID


async def test_when_the_full_model_is_too_expensive_the_fast_one_answers() -> None:
    provider = Priced([text("cheap")])
    bench = Bench(provider, models=FAST, daily_usd_micros=WORST // 2)

    record = await bench.round()

    assert [r.model for r in provider.requests] == ["small"]
    assert (record.text, record.notices) == (
        "cheap",
        (_too_dear(WORST // 2, spent=0),),
    )


FRUGAL = replace(FAST, frugal=True)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (text("I need ", "<need_more", "_context/>"), "asked for a stronger one"),
        ([TextChunk("half"), DoneChunk(StopReason.MAX_TOKENS, Usage(1, 0, 0, 1), "small")], "fit"),
    ],
    ids=["marker", "max_tokens"],
)
async def test_an_escalated_frugal_round_never_shows_its_marker(
    answer: list[StreamChunk], why: str
) -> None:
    provider = Priced([answer])
    bench = Bench(provider, models=FRUGAL)

    record = await bench.round()

    assert (record.passed_on, record.model) == (True, answer[-1].model)  # type: ignore[union-attr]
    assert why in record.notices[0]
    assert provider.requests[0].model == "small"
    shown = "".join(e.text for e in bench.events if isinstance(e, TextDelta))
    assert "<" not in shown


async def test_an_escalated_frugal_turn_stays_with_the_full_model() -> None:
    provider = Priced([text("full answer")])
    bench = Bench(provider, models=FRUGAL)

    record = await bench.budget.round(REQUEST, 2, bench.events.append, "", full=True)

    assert ([r.model for r in provider.requests], record.passed_on) == ([""], False)


async def test_a_sufficient_frugal_answer_is_the_answer() -> None:
    provider = Priced([text("a < b", " is fine <need")])
    bench = Bench(provider, models=FRUGAL)

    record = await bench.round()

    shown = "".join(e.text for e in bench.events if isinstance(e, TextDelta))
    assert (record.passed_on, shown, record.text) == (False, "a < b is fine <need", shown)


async def test_a_round_that_could_not_be_stored_is_not_bought_again() -> None:
    paid = ScriptedProvider([text("dear")], price=PAID)
    bench = Bench(paid)
    bench.ledger.broken = {"record"}
    with pytest.raises(StorageUnavailable):
        await bench.round()
    bench.ledger.broken = set()

    record = await bench.round()

    assert (record.text, len(paid.requests), len(bench.rows.rows)) == ("dear", 1, 1)
    assert len(bench.events) == 2


async def test_an_unreadable_ledger_stops_every_request() -> None:
    paid = ScriptedProvider([text("dear")], price=PAID)
    bench = Bench(paid, daily_usd_micros=1_000_000)
    bench.ledger.broken = {"reserve"}

    with pytest.raises(StorageUnavailable):
        await bench.round()

    assert paid.requests == []


def sample(bench: Bench, name: str, **labels: str) -> float:
    return bench.metrics.registry.get_sample_value(name, labels) or 0


async def test_fallbacks_are_counted_by_kind() -> None:
    emulated = [
        replace(chunk, warnings=(TOOLS_EMULATED,)) if isinstance(chunk, DoneChunk) else chunk
        for chunk in text("x")
    ]
    bench = Bench(
        ScriptedProvider([[ErrorChunk(ErrorKind.AUTH, "401")]], "a"),
        ScriptedProvider([emulated], "b"),
    )

    await bench.round()

    counted = [
        sample(bench, "kortex_fallbacks_total", kind=kind)
        for kind in ("provider", "tools", "model")
    ]
    assert counted == [1, 1, 0]


async def test_the_first_provider_is_not_a_fallback_and_its_translation_is_measured() -> None:
    bench = Bench(ScriptedProvider([text("x")], "a"))

    await bench.round()

    assert sample(bench, "kortex_fallbacks_total", kind="provider") == 0
    for direction in ("request", "answer"):
        name = "kortex_translation_seconds_count"
        assert sample(bench, name, provider="a", direction=direction) == 1


@pytest.mark.parametrize("kind", [ErrorKind.TIMEOUT, ErrorKind.PROTOCOL])
async def test_a_round_cut_before_its_first_word_costs_its_known_usage(kind: ErrorKind) -> None:
    billed = [ErrorChunk(kind, "cut", usage=Usage(100, 0, 0, 1), began=True)]
    bench = Bench(ScriptedProvider([billed], price=PAID), daily_usd_micros=10**9)

    record = await bench.round()

    ((_, spending),) = bench.rows.rows.values()
    assert (record.provider, record.error) == ("", kind)
    assert spending.usage == Usage(100, 0, 0, 1)
    assert spending.cost_usd_micros == record.cost_usd_micros == 100 * 3 + 15


async def test_a_cut_round_without_usage_costs_its_input() -> None:
    bench = Bench(
        ScriptedProvider([[ErrorChunk(ErrorKind.TIMEOUT, "cut", began=True)]], price=PAID),
        daily_usd_micros=10**9,
    )

    record = await bench.round()

    ((_, spending),) = bench.rows.rows.values()
    assert (spending.cost_usd_micros, record.cost_usd_micros) == (None, None)
    assert spending.counted_usd_micros == 1025 * 3


async def test_a_round_that_never_began_costs_nothing() -> None:
    bench = Bench(
        ScriptedProvider([[ErrorChunk(ErrorKind.TIMEOUT, "no answer")]], price=PAID),
        daily_usd_micros=10**9,
    )

    await bench.round()

    assert bench.rows.rows == {}


LIMITED: list[StreamChunk] = [ErrorChunk(ErrorKind.RATE_LIMITED, "429", retry_after_s=60.0)]
REFUSED: list[StreamChunk] = [ErrorChunk(ErrorKind.AUTH, "401")]


class TwoModels(ScriptedProvider):
    """Says of each model what a test wants said."""

    answers: dict[str, list[StreamChunk]]

    async def stream(self, request: CompleteRequest) -> AsyncIterator[StreamChunk]:
        self.requests.append(request)
        for chunk in self.answers[request.model]:
            yield chunk


def two_models(by_model: bool, **answers: list[StreamChunk]) -> TwoModels:
    provider = TwoModels([], limits_by_model=by_model, price=PAID)
    provider.answers = {"": answers["full"], "small": answers["small"]}
    return provider


# Who is asked in three rounds, by how the vendor limits and what the two models answer.
ASKED_OF = {
    "a limited fast model leaves the full one": (
        two_models, True, FRUGAL, LIMITED, text("full"), ["small", "", "", ""],
    ),
    "a limited full model leaves the fast one": (
        two_models, True, FAST, text("small"), LIMITED, ["", "small", "small", "small"],
    ),
    "a limit of the account leaves neither": (
        two_models, False, FRUGAL, LIMITED, text("full"), ["small"],
    ),
    "a refused key leaves neither": (
        two_models, True, FRUGAL, REFUSED, text("full"), ["small", "small", "small"],
    ),
    "two limits leave neither": (
        two_models, True, FRUGAL, LIMITED, LIMITED, ["small", ""],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ASKED_OF)
async def test_a_rate_limit_blocks_only_its_own_scope(case: str) -> None:
    make, by_model, models, small, full, asked = ASKED_OF[case]
    provider = make(by_model, small=small, full=full)
    bench = Bench(provider, models=models)

    for number in (1, 2, 3):
        await bench.round(number)

    assert [request.model for request in provider.requests] == asked


async def test_the_other_model_answers_in_the_rate_limited_round() -> None:
    provider = two_models(True, small=LIMITED, full=text("full answer"))
    bench = Bench(provider, models=FRUGAL)

    record = await bench.round()

    assert (record.text, record.passed_on, record.error) == ("full answer", False, None)
    assert "scripted: 429" in record.notices


async def test_another_workspaces_questions_also_have_their_own_limit() -> None:
    provider = ScriptedProvider([text("x"), text("y")], "a", price=PAID)
    bench = Bench(provider, daily_usd_micros=10**9)
    bench.all.tenants = Tenants(
        lambda team: "" if team == "THOME" else team, {"TACME": 1}.__getitem__
    )
    acme = replace(ASK, place=replace(ASK.place, team=TeamId("TACME")))

    record = await bench.round(1, bench.of(acme))
    bench.all.tenants = Tenants(lambda _: "", lambda _: 0)
    await bench.round(2, bench.of(ASK))

    assert record.error is not None
    assert [kind for kind in bench.memory.kinds() if kind is AuditKind.BUDGET_REFUSED]
    assert [row.tenant for _, row in bench.rows.rows.values() if row.round == 2] == [""]
