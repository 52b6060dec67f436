"""The closing statement: accepted unchanged, refused if invalid."""

import orjson
import pytest

from bot.domain.findings import details_of
from bot.domain.turn_events import Evidence
from tests.fakes.tools import bench
from tools.core.report_findings import ReportFindings


async def test_a_statement_is_accepted_and_summarised() -> None:
    given = {"verdict": "cause", "suspects": [{"product": "db", "kind": "pool"}], "missing": []}
    outcome = await bench([ReportFindings()]).run(
        orjson.dumps(given).decode(), "core__report_findings"
    )

    assert outcome.record.ok
    assert orjson.loads(outcome.content) == {"verdict": "cause", "suspects": 1}
    assert outcome.summary == "cause: db"


async def test_the_summary_shows_which_trouble_is_over() -> None:
    suspects = [{"product": "db", "until": "2026-11-20T09:40:00Z"}, {"product": "web"}]
    given = orjson.dumps({"verdict": "cause", "suspects": suspects}).decode()
    outcome = await bench([ReportFindings()]).run(given, "core__report_findings")

    assert outcome.summary == "cause: db (over), web"


@pytest.mark.parametrize("given", ['{"verdict": "fine"}', "{}", '{"verdict": "cause", "odd": 1}'])
async def test_an_invalid_statement_is_refused(given: str) -> None:
    assert not (await bench([ReportFindings()]).run(given, "core__report_findings")).record.ok


async def test_the_result_contains_what_the_answer_has_no_room_for() -> None:
    given = {"verdict": "cause", "also_found": ["web moved [E1]"], "missing": ["traces: none"]}
    outcome = await bench([ReportFindings()]).run(
        orjson.dumps(given).decode(), "core__report_findings"
    )

    assert outcome.record.ok
    evidence = [Evidence.of(1, outcome)]
    assert details_of(evidence) == ["web moved [E1]", "not checked: traces: none"]
