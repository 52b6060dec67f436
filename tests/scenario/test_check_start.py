"""`kortex check` starts without what only a conversation needs: its time limit holds the start as well."""

import asyncio
import sys

NOT_NEEDED = {
    "bot.app.build",
    "bot.app.conversation",
    "bot.chat.turn",
    "bot.chat.loop",
    "bot.app.start",
    "dbos",
    "slack_bolt",
}


async def test_check_starts_without_the_conversations_imports() -> None:
    seen = f"import sys, bot.cli.check.command;print({NOT_NEEDED} & sys.modules.keys())"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", seen, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate()

    assert told == b"set()\n"
