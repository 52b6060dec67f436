"""The calls of a first look: the same with which an investigation without a model begins."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from adapters.llm.messages import CompleteRequest, Message, ToolCall
from adapters.llm.triage.case import OWN_CALL, Signals, read_case
from adapters.llm.triage.judgement import judged
from adapters.llm.triage.plan import next_calls

_ID: Final = "look-"
# These requests are not about an incident, or describe their jobs separately.
_LOOKS_ELSEWHERE: Final = frozenset({"recommend", "platform"})
# Topics that one round of calls answers. The result precedes the model, even a weak one.
_LOOKED_AT: Final = frozenset({"cause", "logs", "deploys", "pods", "history", "runbook"})


def look_calls(request: CompleteRequest) -> Sequence[ToolCall]:
    """The calls to make before the model is asked; empty if no look answers the question."""
    if request.meta.purpose in _LOOKS_ELSEWHERE:
        return ()
    case = read_case(request)
    if case.asked.topic == "beyond" and not case.asked.wish:  # a model may understand it
        case = replace(case, asked=replace(case.asked, topic="cause", part="all", also=()))
    if case.asked.topic not in _LOOKED_AT or any(one.topic == "order" for one in case.asked.also):
        return ()
    calls = next_calls(case, judged(case), Signals())
    return [replace(call, id=f"{_ID}{number}") for number, call in enumerate(calls)]


def is_of_look(call: ToolCall) -> bool:
    return call.id.startswith(_ID)


def is_named_as_ours(call: ToolCall) -> bool:
    """Whether a model's call has an id of a look or of triage, and would pass for theirs."""
    return call.id.startswith((_ID, OWN_CALL))


def is_look(message: Message) -> bool:
    return bool(message.tool_calls) and all(map(is_of_look, message.tool_calls))
