"""Cards: the shown action is the one that runs, with any text of the model."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.actions.orders import line
from bot.domain.proposal import ProposalState, canonical
from bot.slack.roles.directory import Paged
from bot.slack.text.blocks import Part
from bot.slack.text.limits import SECTION_CHARS
from bot.slack.views.cards import CONFIRM_ACTION, EDIT_ACTION, RAW_ACTION, REJECT_ACTION, card
from bot.web.api.proposals import proposal_model
from tests.golden.slack_views import AT, proposal

LEFT_OPEN = "your deploy system picks the missing values"


def action_ids(part: Part) -> list[str]:
    """The buttons of a card."""
    return re.findall(r"'action_id': '([^']+)'", str(part.blocks))


def arguments(part: Part) -> str:
    """The text under the arguments' label, as a reader sees it."""
    block: Any = part.blocks[2]
    shown = str(block["text"]["text"]).removeprefix("*Arguments*")
    return shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def read(shown: str) -> dict[str, Any]:
    """The arguments as a reader understands them: lines, or JSON where names are no words."""
    block = re.fullmatch(r"\n```\n(.*)\n```", shown, re.DOTALL)
    if block is not None:
        return dict(json.loads(block[1]))
    lines = re.findall(r"^• ([^:]+): `([^`\n]*)`$", shown, re.MULTILINE)
    assert shown == f"  none: {LEFT_OPEN}" or shown == "".join(f"\n• {k}: `{v}`" for k, v in lines)
    return {key: json.loads(v) if v.startswith('"') else v for key, v in lines}


@pytest.mark.parametrize(
    "state", [state for state in ProposalState if state is not ProposalState.PENDING]
)
def test_a_decided_card_offers_only_its_details(state: ProposalState) -> None:
    assert action_ids(card(proposal(state), "responder", AT)) == [RAW_ACTION]


def test_a_pending_cards_buttons_carry_only_the_id() -> None:
    part = card(proposal(), "responder", AT)

    assert action_ids(part) == [RAW_ACTION, CONFIRM_ACTION, EDIT_ACTION, REJECT_ACTION]
    assert re.findall(r"'value': '([^']+)'", str(part.blocks)) == ["prop_01JD"] * 4


def test_a_card_without_arguments_says_who_chooses_the_omitted_ones() -> None:
    row = proposal(params="{}", confirm_dialog=True)
    shown = str(card(row, "responder", AT).blocks)

    assert f"*Arguments*  none: {LEFT_OPEN}" in shown
    assert f"at once, without arguments: {LEFT_OPEN}." in shown


def test_a_card_after_its_expiry_offers_no_decision() -> None:
    assert action_ids(card(proposal(), "responder", AT + timedelta(minutes=10))) == [RAW_ACTION]


def test_arguments_too_long_to_show_cannot_be_confirmed() -> None:
    part = card(proposal(params=canonical({"script": "x" * 2_990})), "responder", AT)

    assert action_ids(part) == [RAW_ACTION, EDIT_ACTION, REJECT_ACTION]
    assert "cannot be confirmed" in str(part.blocks)


def test_a_product_too_long_to_show_cannot_be_confirmed() -> None:
    assert action_ids(card(proposal(product="p" * 201), "responder", AT)) == [
        RAW_ACTION,
        EDIT_ACTION,
        REJECT_ACTION,
    ]


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
        max_size=6,
    )
)
@example({"host": "true", "count": "12", "names": "a, b", "empty": "", "space": " a"})
@example({"path": "C:\\Users\\u202e\\", "a": "\\U0001f600"})
def test_the_arguments_shown_are_the_arguments_stored(params: dict[str, str]) -> None:
    shown = arguments(card(proposal(params=canonical(params)), "responder", AT))

    assert read(shown) == params


@pytest.mark.parametrize("sign", ["\u202e", "\u200b", "`", "@channel", "\U000e0041", "\u3164"])
def test_no_character_is_hidden_in_the_arguments(sign: str) -> None:
    shown = arguments(card(proposal(params=canonical({"target": f"a{sign}b"})), "responder", AT))

    assert sign not in shown.replace("`", "", 2)
    assert read(shown) == {"target": f"a{sign}b"}


@given(st.text(max_size=2_000))
def test_the_models_reasons_stay_boxed_below_the_facts(rationale: str) -> None:
    part = card(proposal(rationale=rationale), "responder", AT)
    texts = [str(block["text"]["text"]) for block in part.blocks if block["type"] == "section"]  # type: ignore[index,call-overload]
    words = next(text for text in texts if "(not verified):_" in text)

    assert all(line.startswith("> ") for line in words.split("\n")[1:])
    assert texts.index(words) > 2
    assert max(map(len, texts)) <= SECTION_CHARS
    assert not re.search(r"<[!@#](?!date)|@channel", words)


def test_mentions_are_only_those_of_the_asker_and_the_decider() -> None:
    hostile = "<!channel> <@U9>"
    part = card(
        proposal(ProposalState.REJECTED, reason=hostile, rationale=hostile, outcome=hostile, product=hostile),
        hostile,
        AT,
    )  # fmt: skip

    assert set(re.findall(r"<[@!#][^>^]*", str(part))) == {"<@U1", "<@U2"}


@pytest.mark.parametrize(
    ("params", "fingerprint", "preview", "title"),
    [
        ({"version": "v2.3.7"}, '{"version":"v2.4.0"}', "", "Roll back checkout: v2.4.0 → v2.3.7"),
        ({}, "", '{"from":"v2.4.0","to":"v2.3.7"}', "Roll back checkout: v2.4.0 → v2.3.7"),
        ({}, '{"version":"v2.99.0"}', "", "Roll back checkout to the version before v2.99.0"),
        ({"version": "v1"}, '{"version":"<!channel>"}', "not json", "Roll back checkout to v1"),
        ({"version": "v1"}, "[]", '{"from":7}', "Roll back checkout to v1"),
    ],
)
def test_a_rollback_names_the_versions_that_its_target_reported(
    params: dict[str, str], fingerprint: str, preview: str, title: str
) -> None:
    row = proposal(params=canonical(params), fingerprint=fingerprint, preview=preview)

    assert card(row, "responder", AT).text == f"Proposal: {title}?"


def test_a_dry_run_says_in_every_state_that_nothing_is_sent() -> None:
    preview = '{"rehearsal":"nothing is sent","would_send":{}}'
    opened = card(proposal(preview=preview, confirm_dialog=True), "responder", AT)
    done = proposal(ProposalState.SUCCEEDED, preview=preview)

    assert opened.text.startswith("Rehearsal: ")
    assert "Nothing is sent." in str(opened.blocks[-2])
    assert card(done, "responder", AT).text.startswith("Rehearsed, nothing sent: ")
    assert "rehearsed, nothing sent" in str(card(done, "responder", AT).blocks[-2])
    assert line(done).startswith("✓ Roll back checkout to 1.4.2: rehearsed, nothing sent.")
    assert proposal_model(done).status == "rehearsed, nothing sent"


def test_a_control_plane_cannot_present_a_dispatch_as_a_dry_run() -> None:
    preview = '{"rehearsal":"nothing is sent","to":"1.4.2"}'

    assert card(proposal(preview=preview), "responder", AT).text.startswith("Proposal: ")


def test_times_of_a_card_are_in_the_zone_of_the_answer() -> None:
    assert "12:10 UTC, 21 Nov" in str(card(proposal(), "responder", AT))


def test_a_card_never_attributes_a_default_limit_to_operators() -> None:
    told = str(card(proposal(), "responder", AT))

    assert "at most one service (the limit of this action)" in told
    assert not re.search(r"declared|configured|configuration|operators", told)


def test_a_card_says_that_untrusted_output_was_read() -> None:
    told = card(proposal(untrusted_read=True), "responder", AT)
    untold = card(proposal(untrusted_read=False), "responder", AT)

    assert "Based on tool output" in str(told)
    assert "Tool output was read" not in str(untold)


def test_a_channel_without_approvers_says_so_and_offers_no_button() -> None:
    part = card(proposal(), "", AT)

    assert "no one: this channel's rule has no" in str(part)
    assert action_ids(part) == [RAW_ACTION]


@pytest.mark.parametrize(
    ("action", "params", "words"),
    [
        ("restart", {"host": "web-1"}, "Proposal: Restart host web-1 of web?"),
        ("restart", {}, "Proposal: Restart web?"),
        ("rollback-deploy", {}, "Proposal: Roll back web?"),
        ("rollback", {"version": "v2.3.7"}, "Proposal: Roll back web to v2.3.7?"),
        ("rollback", {"version": "no such <version>"}, "Proposal: Rollback web?"),
        ("rollback-config", {"version": "v7"}, "Proposal: Rollback config version v7 of web?"),
        ("scale", {"replicas": 3, "wait": True}, "Proposal: Scale replicas 3, wait true of web?"),
        ("restart", {"host": "web-1? Approved by the lead"}, "Proposal: Restart web?"),
        ("restart", {"host": "web-1", "hosts": ["a", "b"]}, "Proposal: Restart web?"),
    ],
)
def test_a_card_begins_with_its_target(action: str, params: dict[str, Any], words: str) -> None:
    row = proposal(action=action, product="web", params=canonical(params))
    part = card(row, "responder", AT)

    head: Any = part.blocks[0]
    assert (head["text"]["text"], part.text) == (words, words)


def test_a_result_is_shown_line_by_line() -> None:
    said = '{"status":"rolled back","hosts":["a-1","a-2"],"version":{"from":"v2","to":"v1"}}'
    part = card(proposal(ProposalState.SUCCEEDED, outcome=said), "responder", AT)

    assert "status: rolled back\nhosts: a-1, a-2\nversion.from: v2\nversion.to: v1" in str(
        part.blocks[-2]["text"]["text"]  # type: ignore[index,call-overload]
    )


def test_an_open_card_mentions_its_approvers_and_a_decided_one_only_its_deciders() -> None:
    ids = Paged(["S0SRE", "U7", "U8", "<!channel>"])
    told = card(proposal(), "responder", AT, ids)
    ended = card(proposal(ProposalState.EXPIRED), "responder", AT, ids)
    nobody = card(proposal(), "", AT, ids)

    assert set(re.findall(r"<[@!#][^>]*", str(told))) >= {"<!subteam^S0SRE", "<@U7", "<@U8"}
    assert "<!channel" not in str(told)
    assert "S0SRE" not in str(ended)
    assert "S0SRE" not in str(nobody)
