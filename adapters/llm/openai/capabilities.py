"""Which request fields an OpenAI model takes, told from its name."""

import re
from typing import Final

_GPT: Final = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?![\d.]*o)")
_REASONS_BY_DEFAULT_SINCE: Final = (5, 5)


def _version(model: str) -> tuple[int, int] | None:
    """(5, 4) for "openai/gpt-5.4-mini"; None for what is no numbered GPT ("gpt-4o" included)."""
    found = _GPT.match(model.rsplit("/", 1)[-1])
    return (int(found[1]), int(found[2] or 0)) if found else None


def is_reasoning(model: str) -> bool:
    """Whether it is a reasoning model: those refuse `max_tokens`, sampling parameters and `stop`."""
    name = model.rsplit("/", 1)[-1]
    version = _version(model)
    return (version is not None and version >= (5, 0)) or re.match(r"o\d", name) is not None


def must_not_reason_with_tools(model: str) -> bool:
    """Whether chat/completions refuses tools unless `reasoning_effort` is "none".

    GPT-5.5 and later reason by default and then answer 400 "Function tools with reasoning_effort
    are not supported ... in /v1/chat/completions".
    """
    version = _version(model)
    return version is not None and version >= _REASONS_BY_DEFAULT_SINCE
