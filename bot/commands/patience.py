"""How long `kortex check` waits for others. It ends within 15 s, whatever they do.

Python's own start is not in these seconds, and waits for nobody.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

from adapters.fault import Fault
from bot.reports.finding import Finding

PART_S: Final = 9.0  # all parts are asked at once
PROBE_S: Final = 7.0  # one question, whose row then says which of them failed
SHARED_S: Final = 5.5  # of what other parts wait for
AFTER_S: Final = 3.0  # a question asked after that
MCP_END_S: Final = 3.2  # what a program that does not end by itself takes (adapters.mcp.stdio)


def unanswered(seconds: float) -> str:
    """What is said of a question that nobody answered."""
    return f"no answer within {seconds:g} s"


async def in_time(part: str, question: Awaitable[Finding]) -> Finding:
    """The row of one question, also where nobody answers it."""
    try:
        async with asyncio.timeout(PROBE_S):
            return await question
    except TimeoutError:
        return Finding(part, False, unanswered(PROBE_S), fault=Fault.SILENT)
