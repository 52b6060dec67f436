"""The arguments of `kortex backup`, `restored` and `records ...`.

What they do: `bot.commands.keep`, `bot.commands.records`.
"""

import argparse
from collections.abc import Callable
from pathlib import Path


def add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    add_command: Callable[..., argparse.ArgumentParser],
) -> None:
    """Add all of them. `add_command` makes one with `--config`."""
    backup = add_command(
        commands, "backup", _backup, "copy the SQLite database into a file, also while it is used"
    )
    backup.add_argument("file", type=Path, metavar="FILE", help="where to; it must not exist yet")
    restored = add_command(
        commands,
        "restored",
        _restored,
        "say that the database was restored from a copy: nothing open in it is ever sent",
    )
    restored.add_argument(
        "--moved", action="store_true", help="it is no copy: the database itself, at another place"
    )


def _backup(parsed: argparse.Namespace) -> int:
    from bot.commands.keep import backup

    return backup(parsed.config, parsed.file)


def _restored(parsed: argparse.Namespace) -> int:
    from bot.commands.keep import restored

    return restored(parsed.config, moved=parsed.moved)
