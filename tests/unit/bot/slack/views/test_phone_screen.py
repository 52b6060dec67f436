"""An answer fits a phone's screen: headline, evidence, one chart, one row of buttons."""

import textwrap
from collections.abc import Iterator

import pytest
from pydantic import JsonValue

from bot.demo.workspace.block_rules import check_blocks
from bot.domain.claims import Claim, ClaimState
from bot.domain.turn_events import Evidence, TurnEnd, TurnFinished
from bot.slack.text.blocks import Block, Part
from bot.slack.views.render import render
from tests.charted_results import COMPARE, compared, result
from tests.golden.slack_views import finished, outcome, view
from tools.records import ToolOutcome

LINE_CHARS = 45  # of a phone in portrait
SCREEN_LINES = 25
POD_ROWS: JsonValue = [[f"checkout-{n}", "Running", "9m"] for n in range(100)]
HEADLINE = "Most likely cause: the deploy of checkout v2.4.0 at 23:01 UTC."
TEXT = "\n".join(
    [
        f"**{HEADLINE}**",
        "",
        "- p99 latency rose to 1.8 s at 23:02 UTC (normally 0.22 s) [E1]",
        "- checkout itself spends 713 ms in POST v1 orders (normally 38 ms) [E2]",
        "- 38 new error lines of checkout [E3]",
        "- v2.4.0 went out at 23:01 UTC, replacing v2.3.7 [E4]",
        "- all pods run, none restarted [E9]",
    ]
)
CALLS: tuple[ToolOutcome, ...] = (
    *(result(COMPARE, compared(), call=f"chart{n}") for n in range(8)),
    result("core__kubectl_get", {"columns": ["Name", "Status", "Age"], "rows": POD_ROWS}, call="k"),
    *(outcome(f"more{n}", truncated=n == 3) for n in range(11)),
)


def answer(**changes: object) -> TurnFinished:
    evidence = tuple(Evidence.of(number, each) for number, each in enumerate(CALLS, 1))
    claims = tuple(
        Claim(line, (number,), ClaimState.SUPPORTED)
        for number in range(1, 10)
        for line in TEXT.split("\n")
        if f"[E{number}]" in line
    )
    notices = tuple(f"anthropic was overloaded at minute {n}; openai answered" for n in range(9))
    return finished(
        text=TEXT, outcomes=CALLS, evidence=evidence, claims=claims, notices=notices, **changes
    )


def rendered(final: TurnFinished) -> Part:
    (part,) = render(view([final]))
    return part


def texts(block: Block) -> Iterator[str]:
    match block.get("type"):
        case "markdown":
            yield str(block["text"])
        case "context":
            elements = block["elements"]
            assert isinstance(elements, list)
            yield from (str(each["text"]) for each in elements if isinstance(each, dict))


def lines_on_a_phone(part: Part) -> int:
    said = [line for block in part.blocks for text in texts(block) for line in text.split("\n")]
    return sum(max(1, len(textwrap.wrap(line, LINE_CHARS))) for line in said)


def test_twenty_calls_eight_charts_and_a_long_table_fit_a_screen() -> None:
    part = rendered(answer())

    assert [block["type"] for block in part.blocks] == [
        "markdown",
        "data_visualization",
        "context",
        "actions",
    ]
    assert lines_on_a_phone(part) <= SCREEN_LINES
    check_blocks(list(part.blocks), "message")


def test_the_one_row_opens_the_evidence_and_takes_feedback() -> None:
    row = rendered(answer()).blocks[-1]["elements"]

    assert isinstance(row, list)
    labels = [each["text"] for each in row if isinstance(each, dict)]
    assert [each["text"] for each in labels if isinstance(each, dict)] == [
        "Evidence (20)",
        "👍",
        "👎",
    ]


def test_notices_without_room_are_counted_and_behind_the_button() -> None:
    (footer,) = (block for block in rendered(answer()).blocks if block["type"] == "context")
    told = "\n".join(texts(footer))

    assert (told.count("ℹ️"), "7 more behind *Evidence*" in told) == (2, True)


def test_an_answer_without_results_opens_its_notices() -> None:
    notices = ("one", "two", "three")
    part = rendered(finished(text=TEXT, outcomes=(), evidence=(), notices=notices))

    assert "Notices (3)" in str(part.blocks[-1])
    assert "1 more behind *Notices*" in str(part.blocks)


def test_the_headline_is_the_text_of_the_notification() -> None:
    assert rendered(answer()).text.startswith(HEADLINE)


@pytest.mark.parametrize("end", TurnEnd)
def test_every_end_of_a_turn_has_one_row_of_buttons(end: TurnEnd) -> None:
    part = rendered(answer(end=end))
    rows = [at for at, block in enumerate(part.blocks) if block["type"] == "actions"]

    assert rows == [len(part.blocks) - 1]
    assert lines_on_a_phone(part) <= SCREEN_LINES
    assert "Evidence (20)" in str(part.blocks[-1])
