"""`kortex check`: each provider that would be asked is asked, for one word."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing

from adapters.fault import Fault, fault_of_status
from adapters.llm.messages import (
    CompleteRequest,
    DoneChunk,
    ErrorChunk,
    ErrorKind,
    Message,
    Role,
)
from adapters.llm.port import Provider
from adapters.llm.triage.provider import NAME as TRIAGE
from bot.commands.patience import PROBE_S, unanswered, within
from bot.reports.finding import Finding

# A few tokens of the configured model; some models refuse a bound below 16.
_QUESTION = CompleteRequest(
    system="", messages=(Message(Role.USER, "Answer with the word ok."),), max_tokens=32
)


async def check_providers(
    providers: Mapping[str, Provider], in_order: Sequence[Provider]
) -> list[Finding]:
    """All at once. Those that nobody would ask are told and left alone; triage is no model."""
    asked = {provider.name for provider in in_order}
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_finding(name, provider, is_asked=name in asked))
            for name, provider in providers.items()
        ]
    return [task.result() for task in tasks]


async def _finding(name: str, provider: Provider, *, is_asked: bool) -> Finding:
    part, reason = f"provider {name}", provider.unavailable_reason
    if reason is not None:
        return Finding(part, False, reason, is_asked)
    if not is_asked:
        unused = "not in default_provider or fallback_providers, so it was not asked"
        return Finding(part, True, unused, configured=False)
    if name == TRIAGE:
        return Finding(part, True, "no model, always there")
    return await _asked(part, provider)


async def _asked(part: str, provider: Provider) -> Finding:
    try:
        async with asyncio.timeout(within(PROBE_S)):
            stream = provider.stream(_QUESTION)
            async with aclosing(stream) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    if isinstance(chunk, ErrorChunk):
                        return _failed(part, chunk)
                    if isinstance(chunk, DoneChunk):
                        return Finding(part, True, "answered (asked for one word, a few tokens)")
    except TimeoutError:
        slow = "a local model that is being loaded may be there the next time"
        return Finding(part, False, f"{unanswered(PROBE_S)}; {slow}", fault=Fault.SILENT)
    return Finding(part, False, "ended without an answer")


def _failed(part: str, chunk: ErrorChunk) -> Finding:
    by_status = None if chunk.kind is ErrorKind.QUOTA else fault_of_status(chunk.status)
    mend = "Add credit or raise the limit at that vendor." if chunk.kind is ErrorKind.QUOTA else ""
    words = f"{chunk.kind.value}: {chunk.message}"
    return Finding(part, False, words, mend=mend, fault=chunk.fault or by_status)
