"""The three recorded incidents: the true cause is named, the decoy is not, a quiet day stays quiet."""

import contextlib
import io
import json
import subprocess
import sys
from functools import cache

import pytest
from pydantic import JsonValue

from bot.cli.main import main
from tests.plain_logging import logging_put_back

DOCUMENTED = {
    "answer", "stop_reason", "provider", "model", "rounds", "tool_calls", "evidence", "usage",
    "cost_usd_micros", "proposal", "claims",
}  # fmt: skip


pytestmark = pytest.mark.may_block_the_loop


def _command(channel: str, question: str) -> list[str]:
    return ["demo", "--ask", question, "--channel", channel, "--json"]


@cache
def _ask(channel: str, question: str) -> dict[str, JsonValue]:
    printed = io.StringIO()
    with logging_put_back(), contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as end:
        main(_command(channel, question))
    assert end.value.code == 0
    answer: dict[str, JsonValue] = json.loads(printed.getvalue())
    return answer


def test_the_command_itself_prints_nothing_but_the_json() -> None:
    command = [sys.executable, "-m", "bot", *_command("incident-quiet", "why is checkout slow?")]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)

    assert set(json.loads(done.stdout)) >= DOCUMENTED


def _headline(answer: dict[str, JsonValue]) -> str:
    return str(answer["answer"]).splitlines()[0]


@pytest.mark.parametrize("question", ["why is checkout slow?", "Checkout times out, what changed?"])
def test_the_bad_deploy_is_named_and_its_rollback_would_be_proposed(question: str) -> None:
    answer = _ask("incident-checkout", question)
    proposal = answer["proposal"]

    assert "deploy of checkout v2.4.0" in _headline(answer)
    assert "recommendations" not in _headline(answer)
    assert "I would propose a rollback of checkout" in str(answer["answer"])
    assert isinstance(proposal, dict)
    assert (proposal["action"], proposal["product"], proposal["params"], proposal["state"]) == (
        "rollback-deploy",
        "checkout",
        {"version": "v2.3.7"},
        "not_raised",
    )
    hosts: list[JsonValue] = ["checkout-1", "checkout-2", "checkout-3"]
    assert proposal["touches"] == hosts
    assert proposal["dry_run"] == {
        "product": "checkout",
        "hosts": hosts,
        "from": "v2.4.0",
        "to": "v2.3.7",
    }


def test_the_saturated_dependency_is_named_and_nothing_is_proposed() -> None:
    answer = _ask("incident-payments", "why is checkout slow?")

    assert "payments-db is saturated" in _headline(answer)
    assert "inventory" not in _headline(answer)
    assert answer["proposal"] is None


def test_a_quiet_day_has_no_findings() -> None:
    answer = _ask("incident-quiet", "why is checkout slow?")

    assert "Nothing is wrong" in _headline(answer)
    assert answer["proposal"] is None


@pytest.mark.parametrize("channel", ["incident-checkout", "incident-payments", "incident-quiet"])
def test_the_json_has_the_documented_keys_and_only_supported_claims(channel: str) -> None:
    answer = _ask(channel, "why is checkout slow?")

    assert set(answer) >= DOCUMENTED
    claims = answer["claims"]
    assert isinstance(claims, list)
    assert [c for c in claims if isinstance(c, dict) and c["note"]] == []
    assert len(claims) >= 4


def test_a_terminal_shows_the_rest_of_an_answer_once_with_all_that_was_not_checked() -> None:
    printed = io.StringIO()
    command = ["demo", "--ask", "ghost?", "--channel", "incident-checkout"]
    with logging_put_back(), contextlib.redirect_stdout(printed), pytest.raises(SystemExit):
        main(command)
    text = printed.getvalue()
    lines = [line for line in text.splitlines() if line.startswith("- ")]

    assert text.count('"ghost" is not one of this channel\'s products') == 1
    assert len(lines) == len(set(lines))
    assert "and 1 more under Evidence" in text
    assert len([line for line in lines if line.startswith("- not checked: ")]) == 2
    assert "**" not in text
