"""An answer of a model that looked at nothing: when it is none, and what people are told."""

from collections.abc import Sequence
from typing import Final

from adapters.llm.messages import ToolSpec
from adapters.llm.written_calls import looks_written
from bot.chat.claims.answer import checked
from bot.domain.claims import ClaimState
from tools.records import ToolOutcome

REPLACED: Final = (
    "the model answered without looking at anything, so its answer is not shown; this one comes from "
    "what was read, without a model"
)
UNCHECKED: Final = "no tool was called for this answer: nothing in it was checked"
# Calls of these read nothing of the systems.
_READS_NOTHING: Final = frozenset(
    {"core__get_current_time", "core__report_findings", "core__propose_action"}
)
# With one of these an investigation without a model finds something.
_INVESTIGATES: Final = frozenset(
    {
        "core__compare_to_baseline",
        "core__error_patterns",
        "core__get_logs",
        "core__get_metrics",
        "core__kubectl_get",
        "core__search_traces",
        "core__sweep_cluster",
        "core__sweep_logs",
        "core__sweep_metrics",
        "core__sweep_traces",
    }
)
_LONGEST_QUESTION_BACK: Final = 600


def can_investigate(tools: Sequence[ToolSpec]) -> bool:
    """Whether these tools are enough for an investigation without a model."""
    return any(tool.name in _INVESTIGATES for tool in tools)


def has_looked(outcomes: Sequence[ToolOutcome]) -> bool:
    """Whether any call has read something of the systems."""
    return any(o.record.ok and o.record.name not in _READS_NOTHING for o in outcomes)


def is_no_answer(text: str, outcomes: Sequence[ToolOutcome], question: str) -> bool:
    """Whether a model's closing words rest on nothing, to a question that needs evidence.

    One that asks back and claims nothing is an answer; a call in JSON never is.
    """
    if looks_written(text):
        return True
    return not has_looked(outcomes) and not _asks_back(text, question)


def _asks_back(text: str, question: str) -> bool:
    text = text.strip()
    if not text.endswith("?") or len(text) > _LONGEST_QUESTION_BACK:
        return False
    _, claims = checked(text, (), {}, question)
    return all(claim.state is not ClaimState.UNSUPPORTED for claim in claims)
