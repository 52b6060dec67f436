"""`kortex ...` in this process."""

import asyncio

import pytest

from bot.cli import main as cli


def run(*arguments: str) -> int:
    """The exit code of `kortex …`."""
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    return int(str(ended.value.code))


async def ran(*arguments: str) -> int:
    """The same on a thread and a loop of its own."""
    return await asyncio.to_thread(run, *arguments)
