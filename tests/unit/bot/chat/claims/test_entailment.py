"""A statement is checked only where a result entails all of it, and contradicted where one refutes it."""

import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.chat.claims.answer import checked
from bot.domain.claims import Claim, ClaimState
from bot.domain.turn_events import Evidence
from tests.claims_fabrications import fabrications
from tests.claims_honest import honest_sentences
from tests.claims_statements import made_up_statements, true_statements
from tests.claims_worlds import World, crash, recovered, release

PARAPHRASES = ("{}", "- {}", "**{}**", "As far as I can see: {}", "> {}")


def _claims(text: str, world: World) -> tuple[Claim, ...]:
    return checked(text, world.evidence, world.arguments, "what is wrong?")[1]


def _state(text: str, world: World) -> ClaimState:
    states = {claim.state for claim in _claims(text, world)}
    order = (ClaimState.SUPPORTED, ClaimState.CONTRADICTED)
    return next((state for state in order if state in states), ClaimState.UNCHECKED)


def test_fabrications_are_not_shown_as_checked() -> None:
    made_up = list(fabrications())
    states = [_state(one.text, one.world) for one in made_up]
    counts = Counter(states)
    missed = Counter(
        one.kind
        for one, state in zip(made_up, states, strict=True)
        if state is ClaimState.SUPPORTED
    )
    sys.stdout.write(
        f"\n{len(made_up)} fabrications: {dict(counts)}, shown as checked {dict(missed)}"
    )

    assert len(made_up) >= 1000
    assert counts[ClaimState.SUPPORTED] == 0
    assert counts[ClaimState.CONTRADICTED] >= 0.6 * len(made_up)


def test_honest_sentences_are_not_contradicted() -> None:
    told = [
        (form.format(text), world) for world, text in honest_sentences(5) for form in PARAPHRASES
    ]
    wrong = [
        text for text, world in told if any(claim.is_doubted for claim in _claims(text, world))
    ]
    supported = sum(_state(text, world) is ClaimState.SUPPORTED for text, world in told)
    sys.stdout.write(
        f"\n{len(told)} honest sentences: {len(wrong)} doubted, {supported} supported: {wrong[:4]}"
    )

    assert len(told) >= 200 * len(PARAPHRASES)
    assert len(wrong) <= 0.02 * len(told)
    assert supported >= 0.35 * len(told)


def test_true_statements_of_the_common_kinds_are_checked() -> None:
    told = list(true_statements())
    states = Counter(_state(text, world) for world, text in told)
    sys.stdout.write(f"\n{len(told)} true statements: {dict(states)}")

    assert len(told) >= 120
    assert states[ClaimState.SUPPORTED] >= 0.8 * len(told)
    assert states[ClaimState.CONTRADICTED] == 0


def test_a_statement_wrong_in_one_detail_is_never_supported() -> None:
    told = list(made_up_statements())

    assert len(told) >= 120
    assert [text for world, text in told if _state(text, world) is ClaimState.SUPPORTED] == []


_FIGURE = re.compile(r"(?<![\w.:-])\d+(?:\.\d+)?(?![\w:]|\.\d)(?=[^\[]*\[E)")
_CLOCK = re.compile(r"\d\d:\d\d")


def _with_another_figure(text: str) -> Iterator[str]:
    """The text once for each figure and clock time, which is another there."""
    for found in _FIGURE.finditer(text):
        places = len(found[0].partition(".")[2])
        other = f"{float(found[0]) * 3 + 2:.{places}f}"
        yield text[: found.start()] + other + text[found.end() :]
    for found in _CLOCK.finditer(text):
        other = f"{found[0][:3]}{(int(found[0][3:]) + 7) % 60:02d}"
        yield text[: found.start()] + other + text[found.end() :]


def test_a_true_statement_with_another_figure_is_not_supported() -> None:
    told = [
        (world, other)
        for world, text in (*true_statements(), *honest_sentences(3))
        for other in _with_another_figure(text)
    ]

    assert len(told) >= 200
    assert [text for world, text in told if _state(text, world) is ClaimState.SUPPORTED] == []


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("{sick} {new} was deployed by {who} at {went} UTC [E1].", ClaimState.SUPPORTED),
        ("{sick} {new} was deployed by {absent} at {went} UTC [E1].", ClaimState.CONTRADICTED),
        ("{new} was never deployed [E1].", ClaimState.CONTRADICTED),
        ("The latency of {sick} rose after {new} was deployed [E1] [E2].", ClaimState.SUPPORTED),
        (
            "The latency of {sick} rose before {new} was deployed [E1] [E2].",
            ClaimState.CONTRADICTED,
        ),
        ("Every request of {sick} fails [E2].", ClaimState.CONTRADICTED),
        ("Only {sick} is slow [E2].", ClaimState.CONTRADICTED),
        ("{sick} and {third} are slow [E2].", ClaimState.SUPPORTED),
        ("{sick} and {calm} are slow [E2].", ClaimState.CONTRADICTED),
        ("{sick} has recovered [E2].", ClaimState.CONTRADICTED),
        ("A crashing pod is the root cause [E4].", ClaimState.CONTRADICTED),
        ("The deploy of {sick} {new} is the most likely cause [E1] [E2].", ClaimState.UNCHECKED),
        ("{sick} lost customers in Norway [E2].", ClaimState.UNCHECKED),
        ('{sick} logged "connection refused by peer" [E3].', ClaimState.CONTRADICTED),
        ("All three pods of {sick} are running [E4].", ClaimState.SUPPORTED),
        ("Two pods of {sick} are running [E4].", ClaimState.CONTRADICTED),
    ],
)
def test_each_entailment_rule_decides(text: str, state: ClaimState) -> None:
    world = release(2)

    assert _state(text.format_map(world.values), world) is state


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("v2.8.0 was rolled back to v2.7.3 at {undone} UTC [E2].", ClaimState.SUPPORTED),
        ("v2.8.0 was rolled back to v2.7.3 by {who} [E2].", ClaimState.SUPPORTED),
        ("{sick} was slow until it was rolled back at {undone} UTC [E2].", ClaimState.UNCHECKED),
        ("A rollback of {sick} was confirmed by {who} [E2].", ClaimState.UNCHECKED),
        ("v2.7.3 was rolled back to v2.8.0 [E2].", ClaimState.CONTRADICTED),
        ("v2.8.0 was rolled back at {back_later} UTC [E2].", ClaimState.CONTRADICTED),
        ("v2.8.0 was rolled back by {absent} [E2].", ClaimState.CONTRADICTED),
    ],
)
@pytest.mark.parametrize("flagged", [True, False])
def test_a_deploy_of_the_previous_version_is_a_rollback(
    text: str, state: ClaimState, flagged: bool
) -> None:
    """Whether or not the source of deploys calls it one."""
    world = recovered(2)
    later = (
        f"{int(world.values['undone'][:2]):02d}:{(int(world.values['undone'][3:]) + 9) % 60:02d}"
    )
    deploys = world.evidence[1]
    content = deploys.content if flagged else deploys.content.replace("true", "false")
    told = (world.evidence[0], replace(deploys, content=content), *world.evidence[2:])
    said = text.format_map({**world.values, "back_later": later})

    assert _state(said, replace(world, evidence=told)) is state


@pytest.mark.parametrize(
    "text",
    [
        "CPU of {calm} peaked at 58 %, so it is not saturated [E4].",
        "The pool filled in {sick}-db, not in {third} [E1].",
    ],
)
def test_a_contrast_and_a_reason_are_not_contradictions(text: str) -> None:
    world = recovered(2)
    assert _state(text.format_map(world.values), world) is not ClaimState.CONTRADICTED


@pytest.mark.parametrize(
    ("zone", "hours"),
    [("CEST", 2), ("EST", -5), ("IST", 5.5), ("UTC+2", 2), ("+05:30", 5.5), ("Berlin time", 2)],
)
def test_a_time_in_another_zone_is_the_same_time(zone: str, hours: float) -> None:
    world = release(2)
    at = int(world.values["went"][:2]) * 60 + int(world.values["went"][3:])
    there = int(at + hours * 60) % 1440
    text = f"{world.values['new']} went out at {there // 60:02d}:{there % 60:02d} {zone} [E1]."

    assert _state(text, world) is not ClaimState.CONTRADICTED


def test_an_attached_file_entails_nothing() -> None:
    world = release(2)
    posing = [each if each.number != 2 else Evidence(
        each.number, each.tool_call_id, "core__read_attachment", "", True, 1, truncated=False, content=each.content
    ) for each in world.evidence]  # fmt: skip
    text = "p99 of {sick} rose to {slow} s [E2].".format_map(world.values)

    (claim,) = checked(text, posing, world.arguments, "")[1]

    assert claim.state is ClaimState.UNCHECKED


def test_a_truncated_list_is_counted() -> None:
    world = release(2)
    listed = "The products {sick}, {calm} and {more} more were looked at [E2]."

    assert (
        _state(listed.format_map({**world.values, "more": 1}), world) is not ClaimState.CONTRADICTED
    )
    assert _state(listed.format_map({**world.values, "more": 6}), world) is ClaimState.CONTRADICTED


@given(st.text(max_size=300))
def test_no_text_breaks_the_check_or_is_supported_by_chance(text: str) -> None:
    for world in (release(1), crash(1), recovered(1)):
        checked(
            f"{text} [E1]. It rose {text} after {text} [E2].", world.evidence, world.arguments, text
        )


def test_an_answer_is_checked_quickly() -> None:
    world = release(3)
    answer = "\n\n".join(text for each, text in honest_sentences(3) if each.name == world.name)
    began = time.process_time()
    for _ in range(5):
        _claims(answer, world)

    assert (time.process_time() - began) / 5 < 0.2  # 70 statements; an answer has ten


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("CPU of {} doubled [E1].", ClaimState.SUPPORTED),
        ("CPU of {} tripled [E1].", ClaimState.CONTRADICTED),
        ("CPU of {} more than tripled [E1].", ClaimState.CONTRADICTED),
        ("CPU of {} more than doubled [E1].", ClaimState.SUPPORTED),
    ],
)
def test_a_spelled_factor_equals_its_rounded_figure(text: str, state: ClaimState) -> None:
    world = release(3)
    shift = {
        "product": world.values["sick"], "role": "cpu", "signal": "cpu_utilization_ratio", "unit": "ratio",
        "usual": 0.2077, "worst": 0.4684, "last": 0.43, "direction": "up", "score": 40.0,
        "since": "2026-05-12T09:00:00Z", "requests": 20.0,
    }  # fmt: skip
    content = orjson.dumps({"shifts": [shift], "within": {}, "step_s": 60.0}).decode()
    sweep = Evidence(1, "c1", "core__sweep_metrics", "", True, 9, truncated=False, content=content)

    told = _state(text.format(shift["product"]), replace(world, evidence=(sweep,)))

    assert told is state


def test_events_of_the_same_sample_have_no_order() -> None:
    world = recovered(2)

    assert _state("The pool was full before latency rose [E1].", world) is ClaimState.UNCHECKED


@pytest.mark.parametrize("verb", ["shows", "says", "keeps", "denies", "cannot", "still", "went"])
def test_the_verb_after_a_pod_is_not_part_of_its_name(verb: str) -> None:
    claims = _claims(f"The pod {verb} nothing unusual [E1].", crash(1))

    assert not any(verb in claim.note for claim in claims)
