"""The request fields that each Claude model accepts at any host; an unknown model gets the minimum.

From the vendor's migration guides; its API answers 400 otherwise.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapters.llm.messages import CompleteRequest


class Thinking(StrEnum):
    """How a model is asked to think before it answers."""

    NONE = "none"  # not asked: it cannot, or it is not known how
    BUDGET = "budget"  # `thinking: {type: enabled, budget_tokens}`
    ADAPTIVE = "adaptive"  # `thinking: {type: adaptive}` with `output_config.effort`


@dataclass(frozen=True, slots=True)
class Capabilities:
    sampling: bool = False  # `temperature`
    thinking: Thinking = Thinking.NONE
    prefill: bool = False  # a conversation that ends with the assistant
    forced_tools: bool = False  # `tool_choice` any or tool, while it does not think


_OLDEST: Final = Capabilities(sampling=True, prefill=True, forced_tools=True)
_BUDGET: Final = Capabilities(True, Thinking.BUDGET, prefill=True, forced_tools=True)
_4_6: Final = Capabilities(True, Thinking.ADAPTIVE, prefill=False, forced_tools=True)
_NEWER: Final = Capabilities(False, Thinking.ADAPTIVE, prefill=False, forced_tools=True)
_NEVER_FORCED: Final = Capabilities(False, Thinking.ADAPTIVE)

# The longest matching prefix counts.
_TABLE: Final[Mapping[str, Capabilities]] = {
    "claude-3-": _OLDEST,
    "claude-3-7-": _BUDGET,
    "claude-haiku-4-": _BUDGET,
    "claude-sonnet-4-": _BUDGET,
    "claude-sonnet-4-6": _4_6,
    "claude-opus-4-0": _BUDGET,
    "claude-opus-4-1": _BUDGET,
    "claude-opus-4-2025": _BUDGET,
    "claude-opus-4-5": _BUDGET,
    "claude-opus-4-6": _4_6,
    "claude-opus-4-7": _NEWER,
    "claude-opus-4-8": _NEWER,
    "claude-opus-5": _NEWER,
    "claude-sonnet-5": _NEWER,
    "claude-haiku-5": _NEWER,
    "claude-fable-5": _NEVER_FORCED,
    "claude-mythos-5": _NEVER_FORCED,
}
_MINIMUM: Final = Capabilities()
# What hosts put before the name: a region and a vendor, an ARN, a gateway's route.
_BEFORE_NAME: Final = re.compile(r"^.*(?=claude-)")

# Tokens to think with, for models that take a number; the API's minimum is 1024.
BUDGET_TOKENS: Final[Mapping[str, int]] = {"low": 1024, "medium": 4096, "high": 16_384}
MIN_BUDGET_TOKENS: Final = 1024
_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")


def capabilities(model: str) -> Capabilities:
    """The capabilities of a model id, at any host."""
    name = _BEFORE_NAME.sub("", model)
    known = [prefix for prefix in _TABLE if name.startswith(prefix)]
    return _TABLE[max(known, key=len)] if known else _MINIMUM


def thinking_fields(model: str, effort: str, max_tokens: int) -> Mapping[str, object]:
    """The request fields that ask for thinking; empty if not requested or not possible.

    The budget leaves at least the API's smallest budget for the answer.
    """
    if effort not in _EFFORTS:
        return {}
    match capabilities(model).thinking:
        case Thinking.ADAPTIVE:
            return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
        case Thinking.BUDGET:
            wanted = BUDGET_TOKENS.get(effort, BUDGET_TOKENS["high"])
            budget = min(wanted, max_tokens - MIN_BUDGET_TOKENS)
            if budget < MIN_BUDGET_TOKENS:
                return {}
            return {"thinking": {"type": "enabled", "budget_tokens": budget}}
        case Thinking.NONE:
            return {}


def may_require(request: CompleteRequest, *, is_first: bool) -> bool:
    """Whether to send `tool_choice` "any": only in a thread without an earlier answer.

    A changed choice drops the cached conversation (the vendor's page on prompt caching), which
    costs more than it gains.
    """
    return request.require_tool and bool(request.tools) and is_first


def ends(roles: Sequence[str]) -> Sequence[int]:
    """The indexes where requests end: the last message, and the one before the last answer."""
    last = len(roles) - 1
    answer = next((at for at in range(last, 0, -1) if roles[at] == "assistant"), 0)
    return [at for at in (answer - 1, last) if at >= 0]
