"""Modals stay within Slack's limits for any result of a tool, and show it inert."""

import json

from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import JsonValue

from bot.domain.turn_events import Evidence
from bot.slack.views.modals import evidence_view, reject_view


def evidence(content: str, summary: str = "12 lines") -> Evidence:
    return Evidence(3, "c", "core__get_logs", summary, True, 40, True, content)


def texts(node: JsonValue) -> list[str]:
    """Every text of a view, in order."""
    match node:
        case {"text": str(text)}:
            return [text]
        case dict():
            return [text for value in node.values() for text in texts(value)]
        case list():
            return [text for value in node for text in texts(value)]
        case _:
            return []


@example("\N{FIRE}", 65_536, "")
@given(st.text(max_size=200), st.integers(0, 2_000), st.text(max_size=4_000))
def test_any_result_fits_in_a_view(unit: str, times: int, summary: str) -> None:
    view = evidence_view(evidence(unit * times, summary))
    blocks = view["blocks"]
    assert isinstance(blocks, list)
    assert len(blocks) <= 100
    assert max(map(len, texts(view))) <= 3_000
    assert min(map(len, texts(view))) > 0
    assert len(json.dumps(view)) < 250_000
    assert '"mrkdwn"' not in json.dumps(view)


def test_a_result_that_fits_is_shown_completely() -> None:
    content = "\n".join(f"line {number}" for number in range(5_000))
    assert content in "".join(texts(evidence_view(evidence(content))))


def test_a_cut_result_says_how_much_is_shown() -> None:
    assert "Shown: the first 112,000 of 200,000 characters." in texts(
        evidence_view(evidence("x" * 200_000))
    )


def test_json_is_laid_out_for_reading() -> None:
    assert '{\n  "a": 1\n}' in texts(evidence_view(evidence('{"a":1}')))


def test_nothing_hides_in_a_result() -> None:
    shown = "".join(texts(evidence_view(evidence("a\u202eb\x1b[2Jc\u200bd"))))
    assert "\\u202e" in shown
    assert "\x1b" not in shown
    assert "\u200b" not in shown


def test_mentions_and_links_stay_text() -> None:
    hostile = "<!channel> <@U1> <https://evil.test|x> ![x](https://evil.test/y)"
    view = evidence_view(evidence(hostile))
    blocks = view["blocks"]
    assert isinstance(blocks, list)
    assert blocks[1] == {
        "type": "rich_text",
        "elements": [
            {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": hostile}]}
        ],
    }


def test_the_reason_is_optional_and_limited() -> None:
    view = reject_view("{}")
    blocks = view["blocks"]
    assert isinstance(blocks, list)
    (block,) = blocks
    assert isinstance(block, dict)
    element = block["element"]
    assert isinstance(element, dict)
    assert (block["optional"], element["max_length"]) == (True, 500)
