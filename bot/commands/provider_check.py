"""`kortex check`: each provider that would be asked is asked, for one word."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing

from adapters.llm.messages import CompleteRequest, DoneChunk, ErrorChunk, Message, Role
from adapters.llm.port import Provider
from adapters.llm.triage.provider import NAME as TRIAGE
from bot.commands.patience import PROBE_S, unanswered
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
    problem = await _problem(provider)
    said = problem or "answered (asked for one word, a few tokens)"
    return Finding(part, problem is None, said)


async def _problem(provider: Provider) -> str | None:
    try:
        async with asyncio.timeout(PROBE_S):
            stream = provider.stream(_QUESTION)
            async with aclosing(stream) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    if isinstance(chunk, ErrorChunk):
                        return f"{chunk.kind.value}: {chunk.message}"
                    if isinstance(chunk, DoneChunk):
                        return None
    except TimeoutError:
        slow = "a local model that is being loaded may be there the next time"
        return f"{unanswered(PROBE_S)}; {slow}"
    return "ended without an answer"
