"""Blocks and views that Slack would refuse are refused, and what it accepts passes."""

import pytest
from pydantic import JsonValue

from bot.demo.workspace.block_rules import check_blocks, check_view
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject


def plain(text: str = "x") -> JsonObject:
    return {"type": "plain_text", "text": text}


def mrkdwn(text: str = "x") -> JsonObject:
    return {"type": "mrkdwn", "text": text}


def button(**more: JsonValue) -> JsonObject:
    return {"type": "button", "text": plain(), "action_id": "a", **more}


def actions(*elements: JsonValue) -> JsonObject:
    return {"type": "actions", "elements": list(elements)}


def section(text: JsonValue) -> JsonObject:
    return {"type": "section", "text": text}


def context(*elements: JsonValue) -> JsonObject:
    return {"type": "context", "elements": list(elements)}


def options(count: int, first: int = 0) -> list[JsonValue]:
    return [{"text": plain(), "value": f"v{n}"} for n in range(first, first + count)]


def menu(**more: JsonValue) -> JsonObject:
    return {"type": "static_select", "action_id": "m", **more}


def group(count: int, first: int = 0, label: str = "g") -> JsonObject:
    return {"label": plain(label), "options": options(count, first)}


ACCEPTED: list[JsonObject] = [
    section(mrkdwn("x" * 3000)),
    {"type": "section", "fields": [mrkdwn("x" * 2000)] * 2},
    {"type": "header", "text": plain("x" * 150)},
    {"type": "divider"},
    {"type": "markdown", "text": "x" * 12_000},
    context(*[mrkdwn()] * 10),
    actions(*[button(action_id=f"a{n}") for n in range(25)]),
    actions(
        button(
            style="danger",
            value="v" * 2000,
            confirm={"title": plain(), "text": mrkdwn(), "confirm": plain(), "deny": plain()},
        )
    ),
    {
        "type": "rich_text",
        "elements": [
            {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "<b>"}]}
        ],
    },
    actions(menu(options=options(100), placeholder=plain("x" * 150))),
    actions(menu(option_groups=[group(100), group(1, 100, "x" * 75)])),
    actions(menu(options=options(2), initial_option=options(1)[0])),
    actions(menu(options=[{"text": plain("x" * 75), "value": "v" * 150}])),
]

REFUSED: list[JsonObject] = [
    section(mrkdwn("x" * 3001)),
    section(mrkdwn("")),
    section("not a text object"),
    {"type": "section"},
    {"type": "section", "text": mrkdwn(), "colour": "red"},
    {"type": "section", "fields": [mrkdwn()] * 11},
    {"type": "header", "text": plain("x" * 151)},
    {"type": "header", "text": mrkdwn()},
    {"type": "markdown", "text": "x" * 12_001},
    {"type": "nonsense"},
    {},
    context(*[mrkdwn()] * 11),
    context(button()),
    context(),
    actions(*[button(action_id=f"a{n}") for n in range(26)]),
    actions(button(), button()),
    actions(button(style="blue")),
    actions(button(text=mrkdwn())),
    actions(button(text=plain("x" * 76))),
    actions(button(value="v" * 2001)),
    actions(button(action_id="a" * 256)),
    actions(button(confirm={"text": mrkdwn("x" * 301)})),
    actions({"type": "plain_text_input", "action_id": "i"}),
    {"type": "input", "label": plain()},
    actions(menu(options=options(101))),
    actions(menu(options=[])),
    actions(menu()),
    actions(menu(options=options(1), option_groups=[group(1)])),
    actions(menu(option_groups=[group(101)])),
    actions(menu(option_groups=[group(1, 0, "x" * 76)])),
    actions(menu(options=[*options(1), *options(1)])),
    actions(menu(option_groups=[group(1), group(1)])),
    actions(menu(options=[{"text": plain("x" * 76), "value": "v"}])),
    actions(menu(options=[{"text": plain(), "value": "v" * 151}])),
    actions(menu(options=[{"text": mrkdwn(), "value": "v"}])),
    actions(menu(options=[{"text": plain(), "value": ""}])),
    actions(menu(options=options(1), placeholder=plain("x" * 151))),
    actions(menu(options=options(1), initial_option=options(1, 1)[0])),
]


@pytest.mark.parametrize("block", ACCEPTED, ids=range(len(ACCEPTED)))
def test_blocks_that_slack_accepts_pass(block: JsonObject) -> None:
    check_blocks([block], "message")


@pytest.mark.parametrize("block", REFUSED, ids=range(len(REFUSED)))
def test_blocks_that_slack_refuses_are_refused_with_a_pointer(block: JsonObject) -> None:
    with pytest.raises(SlackRefused) as refused:
        check_blocks([block], "message")

    assert refused.value.code == "invalid_blocks"
    assert all("[json-pointer:/blocks" in message for message in refused.value.messages)


def test_fifty_blocks_pass_and_one_more_does_not() -> None:
    check_blocks([{"type": "divider"}] * 50, "message")
    with pytest.raises(SlackRefused, match="invalid_blocks"):
        check_blocks([{"type": "divider"}] * 51, "message")


def test_markdown_counts_over_all_blocks() -> None:
    with pytest.raises(SlackRefused, match="invalid_blocks"):
        check_blocks([{"type": "markdown", "text": "x" * 6001}] * 2, "message")


def test_the_text_of_all_blocks_together_is_limited() -> None:
    check_blocks([section(mrkdwn("x" * 2640))] * 5, "message")
    with pytest.raises(SlackRefused, match="msg_blocks_too_long"):
        check_blocks([section(mrkdwn("x" * 2641))] * 5, "message")


def test_a_block_id_must_be_unique() -> None:
    with pytest.raises(SlackRefused, match="invalid_blocks"):
        check_blocks([{"type": "divider", "block_id": "b"}] * 2, "message")


def modal(**more: JsonValue) -> JsonObject:
    blocks: list[JsonValue] = [section(plain())]
    return {"type": "modal", "title": plain("Title"), "blocks": blocks, **more}


INPUT: JsonObject = {
    "type": "input",
    "label": plain("Why?"),
    "element": {"type": "plain_text_input", "action_id": "why"},
}


@pytest.mark.parametrize(
    "view",
    [modal(), modal(submit=plain("Go"), blocks=[INPUT]), modal(private_metadata="x" * 3000)],
)
def test_modals_slack_accepts_pass(view: JsonObject) -> None:
    check_view(view, "modal")


@pytest.mark.parametrize(
    "view",
    [
        modal(title=plain("x" * 25)),
        modal(submit=plain("x" * 25)),
        modal(private_metadata="x" * 3001),
        modal(blocks=[INPUT]),
        modal(blocks=[{"type": "markdown", "text": "not in modals"}]),
        modal(blocks=[{"type": "divider"}] * 101),
        modal(unknown=True),
        modal(type="home"),
    ],
)
def test_modals_slack_refuses_are_refused(view: JsonObject) -> None:
    with pytest.raises(SlackRefused, match="invalid_arguments"):
        check_view(view, "modal")


def test_a_view_above_250_kb_is_too_large() -> None:
    blocks: list[JsonValue] = [section(plain("x" * 3000))] * 90
    with pytest.raises(SlackRefused, match="view_too_large"):
        check_view(modal(blocks=blocks), "modal")
