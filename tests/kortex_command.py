"""`kortex ...` in this process, beside a test's own loop."""

import asyncio

import pytest

from bot import cli


async def ran(*arguments: str) -> int:
    """The exit code of `kortex …`, on a thread and a loop of its own."""

    def main() -> int:
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        return int(str(ended.value.code))

    return await asyncio.to_thread(main)
