"""Every sentence of an answer is held against the results it cites, and marked where it fails."""

import sys
from collections import Counter, defaultdict
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.triage.surroundings import in_code
from bot.chat.claims.answer import checked
from bot.domain.claims import ClaimState
from bot.domain.turn_events import Evidence
from tests.claims_corpus import Said, fabrications, honest
from tests.pace import spending


def _evidence(content: str, number: int = 1, *, ok: bool = True) -> Evidence:
    return Evidence(
        number, f"c{number}", "core__get_metrics", "", ok, 80, truncated=False, content=content
    )


SEEN = [
    _evidence('{"unit": "seconds", "baseline_window": "", "window_max": 1.79, "baseline_mean": 0.318, "direction": "up", "anomalous": true}'),
    _evidence('{"error": "upstream: 503"}', 2, ok=False),
    _evidence('{"ratio": 0.079, "product": "cart", "ts": "2026-04-07T14:10:30Z"}', 3),
]  # fmt: skip


def _marked(sayings: list[Said]) -> list[bool]:
    """Which are marked. Those of one world are paragraphs of one answer."""
    worlds: defaultdict[str, list[Said]] = defaultdict(list)
    for said in sayings:
        worlds[said.world].append(said)
    noted: set[tuple[str, str]] = set()
    for name, of_it in worlds.items():
        answer = "\n\n".join(said.text for said in of_it)
        _, claims = checked(answer, of_it[0].evidence, of_it[0].arguments, "why?")
        noted |= {(name, claim.text) for claim in claims if claim.note}
    return [
        any(name == said.world and text in said.text for name, text in noted) for said in sayings
    ]


def test_fabrications_are_marked() -> None:
    made_up = fabrications()
    marked = _marked(made_up)
    missed = Counter(said.kind for said, seen in zip(made_up, marked, strict=True) if not seen)
    sys.stdout.write(
        f"\nfabrications: {len(made_up)}, marked {sum(marked) / len(made_up):.1%}, missed {dict(missed)}"
    )

    assert len(made_up) >= 200
    assert sum(marked) / len(made_up) >= 0.95


def test_honest_sentences_are_left_alone() -> None:
    sayings = honest()
    marked = _marked(sayings)
    sys.stdout.write(f"\nhonest sentences: {len(sayings)}, marked {sum(marked) / len(sayings):.1%}")

    assert len(sayings) >= 200
    assert sum(marked) / len(sayings) <= 0.02


@pytest.mark.parametrize(
    "answer",
    [
        "p99 rose to 1.8 s [E1], usually 0.32 s.",
        "p99 rose to 1790 ms [E1]. Usually it is 318 ms.",
        "7.9 % of the requests to cart fail [E3].",
        "- **Slow** [E1]:\n  - p99 is 1.79 s",
        "The question of logs is open: the call failed [E2].",
        "`cart` since 14:10 UTC [E3].",
        "_p99_ rose to __1.8 s__ [E1], _usually 0.32 s._",
        "The series job_* and `_total` are of _cart_ [E3].",
    ],
)
def test_a_statement_of_the_cited_result_is_not_marked(answer: str) -> None:
    text, claims = checked(answer, SEEN, {}, "why?")

    assert text == answer
    assert {c.state for c in claims} <= {ClaimState.SUPPORTED, ClaimState.UNCHECKED}


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("It is 1.8 ms [E1]. Next.", "It is 1.8 ms [E1]. (⚠ not in E1: 1.8 ms) Next."),
        ("It is `9.7 s` [E1].", "It is `9.7 s` [E1]. (⚠ not in E1: 9.7 s)"),
        ("It is __9.7 s__ [E1].", "It is __9.7 s__ [E1]. (⚠ not in E1: 9.7 s)"),
        ("It is _9.7_ s [E1].", "It is _9.7_ s [E1]. (⚠ not in E1: 9.7 s)"),
        ("_9.7 s it is [E1]. So._", "_9.7 s it is [E1]. (⚠ not in E1: 9.7 s) So._"),
        ("_cart_ since _14:20_ [E3].", "_cart_ since _14:20_ [E3]. (⚠ not in E3: 14:20)"),
        ("p99 fell [E1].", "~~p99 fell [E1].~~ (⚠ E1 says: above its baseline)"),
        ("It is cart [E2].", "It is cart [E2]. (⚠ E2 failed)"),
        ("It is cart [E7].", "It is cart [E7]. (⚠ E7 does not exist)"),
        ("cart is slow since 14:20 [E3].", "cart is slow since 14:20 [E3]. (⚠ not in E3: 14:20)"),
        ("| p99 | 9.7 s [E1] |", "| p99 | 9.7 s [E1]  (⚠ not in E1: 9.7 s)|"),
        ("p99 is 1.7 s.", "p99 is 1.7 s. (⚠ not in any result: 1.7 s)"),
        ("See [E1]:\n```\nlatency 9.7 s\n```\nEnd.", "See [E1]:\n```\nlatency 9.7 s\n```\n⚠ not in E1: 9.7 s\nEnd."),
    ],
)  # fmt: skip
def test_an_unsupported_statement_is_marked_in_place(answer: str, shown: str) -> None:
    assert checked(answer, SEEN, {}, "why?")[0] == shown


def test_a_sentence_without_a_citation_uses_the_nearest_one_of_its_paragraph() -> None:
    _, claims = checked("p99 rose [E1]. It is 1.79 s.\n\nIt is 1.79 s.", SEEN, {}, "why?")

    assert [c.evidence for c in claims] == [(1,), (1,), ()]


@pytest.mark.parametrize(
    "answer",
    [
        "I can look at logs and metrics.",
        "You said 250 ms; is that p99?",
        "I cannot say whether checkout is slow.",
        "A pool can be exhausted by a slow query.",
        "You are welcome!",
    ],
)
def test_a_turn_without_tools_may_not_make_claims(answer: str) -> None:
    assert checked(answer, (), {}, "why 250 ms?") == (answer, ())
    assert "no tool was called" in checked("The deploy caused it.", (), {}, "why?")[0]


@pytest.mark.parametrize("saying", ["The deploy caused it.", "The database is down."])
@pytest.mark.parametrize(
    "seen",
    [
        _evidence('{"error": "upstream: 503"}', ok=False),
        replace(_evidence('{"verdict": "cause"}'), tool="core__report_findings"),
    ],
)
def test_a_turn_that_could_read_nothing_may_not_make_claims(saying: str, seen: Evidence) -> None:
    assert "⚠ not checked: nothing could be read" in checked(saying, [seen], {}, "why?")[0]
    honest = "The logs could not be read, so the cause is not established."
    assert checked(honest, [seen], {}, "why?")[0] == honest


@pytest.mark.parametrize(
    "piece",
    ["1", "1.1 ", "1,", "9:", "a-1", "v1.", "`1", "- 1\n", "[E1]. A", "from 1 ", "| 1 ", "```\n1\n", "A", " ", "a.",
     "not ", "1-", "deadbeef", "1m 2", "2026-01-01T"],
)  # fmt: skip
def test_a_hostile_megabyte_is_checked_quickly(piece: str) -> None:
    with spending() as spent:
        text, _ = checked(piece * (1_000_000 // len(piece)), SEEN, {}, "why?")

    assert spent.pieces < 40
    assert "⚠" in text or not text.strip()


def test_a_figure_only_in_a_charts_course_supports_nothing() -> None:
    row = {"product": "checkout", "usual": 0.2, "worst": 1.8, "unit": "seconds"}
    course = {"before_end_s": [600, 0], "values": [1.37, 1.8]}
    content = orjson.dumps({"shifts": [row | {"course": course}]}).decode()

    text, _ = checked("The latency of checkout is 1.37 s [E1].", [_evidence(content)], {}, "why?")

    assert "⚠" in text


SWEPT = _evidence(
    orjson.dumps({
        "shifts": [
            {"product": "adoptions@services-database.eu.example_Database::SQL", "role": "latency", "unit": "Seconds",
             "usual": 0.0012, "worst": 0.082, "direction": "up", "score": 9.1},
        ],
        "changes": [
            {"product": "seat", "level": "error", "change": "new", "before": 0, "after": 7, "since": "2026-04-07T14:10:00Z",
             "example": "19:38:52.771 ERROR TraceID: cf96d7c6a09dd1da SpanID: 59ec706f91c8f610 [left][request:Seat(date=2023-01-30 17:38:46)]"},
        ],
        "ill": [{"product": "", "kind": "Node", "name": "ip-10-0-1-73.eu.compute.internal", "state": "NotReady"}],
        "calls": ["food-service > travel-service"],
    }).decode(),
)  # fmt: skip


@pytest.mark.parametrize(
    "honest",
    [
        'Seat has 7 new errors, such as "ERROR left request Seat(date 2023-01-30 17 38 46)" [E1].',
        "adoptions-services-database.eu.example_Data: latency rose to 82 ms (normally 1.2 ms) [E1].",
        "Node ip-10-0-1-73.eu.compute.internal is NotReady [E1].",
        "The way from food-service to travel-service takes longer [E1].",
    ],
)
def test_quoted_cut_and_differently_punctuated_text_is_not_marked(honest: str) -> None:
    assert checked(honest, [SWEPT], {}, "why?")[0] == honest


@pytest.mark.parametrize(
    "made_up",
    [
        'Seat has errors, such as "ERROR left request Seat(date 2023-01-30 17 38 59)" [E1].',
        "adoptions-services-database.us.example_Data is slow [E1].",
        "Node ip-10-0-1-74.eu.compute.internal is NotReady [E1].",
        "SeatController.create takes longer [E1].",
    ],
)
def test_a_figure_outside_the_results_is_marked_in_a_mostly_correct_sentence(made_up: str) -> None:
    assert "⚠ not in E1" in checked(made_up, [SWEPT], {}, "why?")[0]


def test_a_stamp_before_year_one_in_utc_is_not_a_time() -> None:
    seen = _evidence(
        '{"lines": [{"message": "cart not after 0001-01-01T00:00:00+01:00 at 14:10"}]}'
    )

    text, claims = checked("cart since 14:10 UTC [E1].", [seen], {}, "why?")

    assert text == "cart since 14:10 UTC [E1]."
    assert [c.state for c in claims] == [ClaimState.UNCHECKED]


def test_a_repeated_sentence_is_judged_the_same() -> None:
    answer = "It is 9.7 s [E1].\n\nIt is 1.79 s.\n\nIt is 1.7 s."

    text, claims = checked(answer, SEEN, {}, "why?")

    assert checked(f"{answer}\n\n{answer}", SEEN, {}, "why?") == (f"{text}\n\n{text}", claims * 2)


# What log lines say of other things: directions, states, causes, orders, doubts.
LOG_WORDS = """declined dropped fell rose slower faster lower normal stable healthy degraded failed
    crashed recovered no none not only all could can't should if because caused before after replacing
    rolled back deployed errors requests pods latency p99 checkout inventory v2.4.0 9 3 MB 97 % from to
    04:05 UTC nothing wrong is was the [E9] **x** "y" it's ? ... 9,000""".split()  # noqa: SIM905


@pytest.mark.parametrize("change", ["new", "grown", "gone"])
@pytest.mark.parametrize("level", ["warn", "error"])
@given(words=st.lists(st.sampled_from(LOG_WORDS), min_size=3, max_size=9))
def test_a_quoted_log_line_is_not_a_statement_of_the_answer(
    change: str, level: str, words: list[str]
) -> None:
    line = " ".join(words)
    before, after = {"new": (0, 121), "grown": (40, 121), "gone": (40, 0)}[change]
    row = {"product": "payments", "level": level, "change": change, "before": before,
           "after": after, "expected": float(before), "example": line}  # fmt: skip
    seen = replace(
        _evidence(orjson.dumps({"changes": [row]}).decode()), tool="core__error_patterns"
    )
    said = {
        "new": f"121 new {level} lines of payments, such as",
        "grown": f"121 more frequent {level} lines of payments, such as",
        "gone": "payments no longer writes lines like",
    }
    _, claims = checked(f"{said[change]} {in_code(line)} [E1]", [seen], {}, "why?")

    assert [claim.note for claim in claims if claim.note] == []


ONE_WORD = replace(
    _evidence(
        '{"changes": [{"product": "payments", "level": "error", "change": "new", "before": 0,'
        ' "after": 121, "expected": 0.0, "example": "declined"}]}'
    ),
    tool="core__error_patterns",
)


@pytest.mark.parametrize(
    "quoted",
    [
        '121 new error lines of payments, such as "declined" [E1]',
        "121 new error lines of payments, such as `declined` [E1]",
        'payments logs "declined" [E1]',
    ],
)
def test_a_quoted_line_of_one_word_is_no_statement_of_the_answer(quoted: str) -> None:
    _, claims = checked(quoted, [ONE_WORD], {}, "why?")

    assert [claim.note for claim in claims if claim.note] == []
    assert claims


@pytest.mark.parametrize(
    "said",
    [
        "errors of payments declined [E1]",
        'errors of payments "declined" since then [E1]',
        'errors of payments have "declined" [E1]',
        '121 new error lines of payments, such as "dropped" [E1]',
    ],
)
def test_a_word_that_is_also_a_line_is_still_checked(said: str) -> None:
    _, claims = checked(said, [ONE_WORD], {}, "why?")

    assert [claim.state for claim in claims] == [ClaimState.CONTRADICTED]
