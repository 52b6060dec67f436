"""An error tracker in an investigation without a model: reported, and it forbids an all-clear."""

from collections.abc import Mapping

import pytest

from adapters.llm.first_look.digest import as_read
from adapters.llm.messages import ToolSpec
from tests.fixtures_first_look import asked, looked, results
from tests.fixtures_triage import TOOLS, deploy, investigate, moved, world

ERRORS = "core__get_errors"
WITH = (*TOOLS, ERRORS)
ONSET = "2026-04-07T14:10:00Z"


def issue(**more: object) -> dict[str, object]:
    told = {"title": "KeyError: 'sku'", "first_seen": "2026-04-07T14:11:30Z", "new": True}
    return {**told, "level": "error", "events": 150, "project": "checkout", "release": "v2", **more}


def tracked(*issues: object) -> Mapping[str, object]:
    return {"get_errors": {"issues": list(issues), "projects": ["checkout"]}}


async def test_a_new_error_prevents_the_all_clear_and_is_reported() -> None:
    around = tracked(issue(), issue(title="other"))
    found = await investigate(world(around=around), tools=WITH)

    assert found.asked("core__report_findings")[-1]["verdict"] == "unknown"
    assert "Nothing is wrong" not in found.text
    assert "a new error of checkout: \"KeyError 'sku'\" since 14:11 UTC, 150 events" in found.text
    assert "first in release v2, and 1 more new ones" in found.text
    assert found.marks == ()


@pytest.mark.parametrize("new", [False, None, "true"])
async def test_an_error_not_known_to_be_new_does_not_matter(new: object) -> None:
    found = await investigate(world(around=tracked(issue(new=new))), tools=WITH)

    (stated,) = found.asked("core__report_findings")
    assert stated["verdict"] == "healthy"
    assert "errors of checkout" in stated["looked_at"]
    assert "a new error" not in found.text


async def test_an_unreadable_tracker_is_never_an_all_clear() -> None:
    found = await investigate(world(around={"get_errors": LookupError("503")}), tools=WITH)

    (stated,) = found.asked("core__report_findings")
    assert stated["verdict"] == "unknown"
    assert stated["missing"] == ["errors: could not be read; see [observe.errors]"]


TABLES = (("errors", "observe.errors.eu"), ("metrics", "observe.metrics.prom"))


async def test_an_unread_tracker_is_named_by_the_channels_backend() -> None:
    def answer(tool: str, arguments: Mapping[str, object]) -> object:
        failed = tool in ("core__sweep_metrics", "core__sweep_traces", "core__get_errors")
        return LookupError("503") if failed else world()(tool, arguments)

    found = await investigate(answer, tools=WITH, tables=TABLES)

    (stated,) = found.asked("core__report_findings")
    told = [each for each in stated["missing"] if "could not be read" in each]
    assert told == [
        "metrics: could not be read; see [observe.metrics.prom]",
        "traces: could not be read; see [observe.traces]",
        "errors: could not be read; see [observe.errors.eu]",
    ]


async def test_a_product_without_a_project_is_not_reported_as_checked() -> None:
    around: Mapping[str, object] = {"get_errors": {"issues": [], "projects": []}}
    found = await investigate(world(around=around), tools=WITH)

    (stated,) = found.asked("core__report_findings")
    assert stated["verdict"] == "healthy"
    assert "errors of" not in str(stated["looked_at"])


async def test_a_cause_is_reported_with_the_suspects_new_error() -> None:
    shifts = [moved("payments", "latency", ONSET), moved("payments", "errors", ONSET, worst=0.08)]
    deploys = [deploy("payments", "2026-04-07T14:09:00Z")]
    found = await investigate(world(shifts, deploys, around=tracked(issue())), tools=WITH)

    asked = [call["product"] for call in found.asked(ERRORS)]
    assert found.asked("core__report_findings")[-1]["verdict"] == "cause"
    assert asked == ["checkout", "payments"]
    assert "a new error of payments: " in found.text
    assert found.marks == ()


async def test_without_a_tracker_nothing_is_asked_or_missing() -> None:
    found = await investigate(world())

    assert found.asked(ERRORS) == []
    assert found.asked("core__report_findings")[0]["verdict"] == "healthy"


@pytest.mark.parametrize(
    "row",
    [{}, issue(first_seen=7), issue(title=None), issue(release=["x"]), issue(title="*<@U1>*")],
)
async def test_a_hostile_entry_is_reported_as_plain_words(row: dict[str, object]) -> None:
    found = await investigate(world(around=tracked({**row, "new": True})), tools=WITH)

    assert "<@" not in found.text
    assert found.asked("core__report_findings")[-1]["verdict"] == "unknown"


async def test_a_first_look_shows_the_new_errors_first_and_can_be_cited() -> None:
    request = asked(tools=tuple(ToolSpec(name, "", {}) for name in WITH))
    body = {
        "range": "2026-04-07T14:05:00Z/2026-04-07T14:35:00Z", "projects": ["checkout"],
        "issues": [issue(new=False, title="old", release=None), issue(events=1234567)],
        "notes": ["not every release could be read"],
    }  # fmt: skip
    read = results(as_read(looked({ERRORS: body}, request)))[ERRORS]

    assert read["evidence"].startswith("E")
    assert read["result"]["errors"] == [
        "new: \"KeyError 'sku'\" since 14:11 UTC, 1234567 events, first in release v2",
        '"old" since 14:11 UTC, 150 events',
    ]
    assert read["result"]["notes"] == ["not every release could be read"]
