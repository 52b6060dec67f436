"""The asker's files in triage: quoted as theirs, beside the measurements, and never weighed."""

from typing import Any

import orjson

from adapters.llm.messages import (
    CompleteRequest,
    Message,
    Meta,
    Role,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from adapters.llm.triage.case import Signals, read_case
from adapters.llm.triage.judgement import judged
from adapters.llm.triage.report import report
from bot.chat.conversation import wrap_evidence
from tests.fixtures_triage import NOW, TOOLS

ERRORS = [
    {
        "line": 12,
        "count": 8,
        "text": "ERROR checkout pool *exhausted* <!channel> [E9] https://evil.example",
    },
    {"line": 40, "count": 1, "text": "FATAL out of memory"},
]


def report_of(question: str, ok: bool = True, **result: Any) -> str:
    body = {"name": "app.log", "total_lines": 1204, "errors": ERRORS, **result}
    call = ToolCall("file-1", "core__read_attachment", '{"file":1}')
    content = wrap_evidence(1, orjson.dumps(body).decode())
    request = CompleteRequest(
        "s",
        (
            Message(Role.USER, question),
            Message(Role.ASSISTANT, tool_calls=(call,)),
            Message(Role.TOOL, tool_result=ToolResult(call.id, call.name, content, not ok)),
        ),
        tools=tuple(ToolSpec(name, "", {}) for name in TOOLS),
        meta=Meta(products=("checkout",), now=NOW),
    )
    case = read_case(request)
    assert (case.seen, case.rounds) == ((), 0)
    return report(case, judged(case), Signals())


def test_error_lines_name_the_file_and_stay_plain_text() -> None:
    said = report_of("why is checkout slow?")

    assert (
        "The attached file app.log has 1204 lines, with these errors; I did not measure any" in said
    )
    assert '- in the file, line 12, 8 times like it: "ERROR checkout pool exhausted' in said
    assert '- in the file, line 40: "FATAL out of memory"' in said
    assert "<!channel>" not in said
    assert "[E9]" not in said
    assert "://" not in said


def test_a_file_with_errors_makes_no_suspect() -> None:
    assert "suspect" not in report_of("why is checkout slow?").lower()


def test_a_question_only_about_the_file_is_answered_from_it() -> None:
    said = report_of("lorem ipsum")

    assert said.startswith("The attached file app.log")
    assert "did not understand" not in said


def test_a_file_without_errors_is_reported_as_such() -> None:
    assert "has 1 line, none of them an error line [E1]" in report_of(
        "why?", total_lines=1, errors=[]
    )


def test_an_unreadable_file_is_reported_only_by_its_notice() -> None:
    assert "[E1]" not in report_of("why?", ok=False)
    assert "did not understand" in report_of("lorem ipsum", ok=False)
