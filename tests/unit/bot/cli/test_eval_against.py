"""Two runs are compared over the cases of both; a lost answer is worse, a lost rank is reported."""

import json
from pathlib import Path

import pytest

from bot.cli.eval.score import Result, Scored, Truth, compared, earlier_results
from bot.settings.reading import ConfigurationError

FAULT = Truth(healthy=False, culprit=("db",))
QUIET = Truth(healthy=True)


def result(name: str, verdict: str, *suspects: str) -> Result:
    return Result(name, verdict, suspects, 0.1, 3, "")


def scored(truth: Truth, one: Result) -> Scored:
    return Scored("own", ("web", "db"), truth, one)


RIGHT = result("a", "cause", "db")


@pytest.mark.parametrize(
    ("truth", "was", "now", "worse"),
    [
        (FAULT, RIGHT, RIGHT, []),
        (FAULT, result("a", "unknown"), RIGHT, []),
        (FAULT, RIGHT, result("a", "cause", "web", "db"), ["own top 1"]),
        (FAULT, RIGHT, result("a", "healthy"), ["own top 1", "own false all clear"]),
        (FAULT, result("a", "unknown"), result("a", "healthy"), ["own false all clear"]),
        (FAULT, result("a", "cause", "web"), result("a", "unknown"), []),
        (QUIET, result("a", "healthy"), result("a", "cause", "web"), ["own false alarm"]),
        (QUIET, result("a", "healthy"), result("a", "unknown"), []),
    ],
)
def test_a_worse_result_is_recognised(
    truth: Truth, was: Result, now: Result, worse: list[str]
) -> None:
    assert compared({"a": was}, [scored(truth, now)]).worse == worse


def test_only_cases_of_both_runs_are_counted() -> None:
    found = compared(
        {"a": RIGHT, "gone": result("gone", "healthy")},
        [scored(FAULT, RIGHT), scored(FAULT, result("new", "healthy"))],
    )

    assert found.cases == 1
    assert found.worse == []
    assert found.before == found.after


def test_changed_answers_are_listed() -> None:
    found = compared({"a": RIGHT}, [scored(FAULT, result("a", "unknown"))])

    assert found.changed == ["a: cause db -> unknown"]
    assert "own: top 1 1.00 -> 0.00" in "\n".join(found.lines(Path("before.json")))
    assert found.lines(Path("before.json"))[-1] == "WORSE: own top 1"


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"results": []}', b'{"results": [{}]}'])
def test_invalid_earlier_results_exit_with_a_message(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "before.json").write_bytes(content)

    with pytest.raises(ConfigurationError, match=r"--against .*before\.json: not what"):
        earlier_results(tmp_path / "before.json")


def test_missing_earlier_results_exit_with_a_message(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        earlier_results(tmp_path / "before.json")


def test_printed_results_can_be_read_back(tmp_path: Path) -> None:
    (tmp_path / "before.json").write_text(json.dumps({"results": [RIGHT.as_json()]}))

    assert compared(earlier_results(tmp_path / "before.json"), [scored(FAULT, RIGHT)]).changed == []
