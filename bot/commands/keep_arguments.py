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
    _add_records(commands, add_command)


def _add_records(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    add_command: Callable[..., argparse.ArgumentParser],
) -> None:
    text = "all that is kept of one conversation or one person"
    parser = commands.add_parser("records", help=text, description=text[0].upper() + text[1:] + ".")
    under = parser.add_subparsers(metavar="COMMAND", required=True)
    export = add_command(under, "export", _export, "print it, one JSON object a line")
    delete = add_command(
        under, "delete", _delete, "delete it; of the trail the content goes and the chain stays"
    )
    delete.add_argument("--reason", required=True, metavar="TEXT", help="written into the trail")
    for each in (export, delete):
        whose = each.add_mutually_exclusive_group(required=True)
        whose.add_argument("--session", default="", metavar="ID", help="this conversation, by id")
        whose.add_argument(
            "--person",
            default="",
            metavar="PERSON",
            help='this person: "U0123456" of home, "T0123456/U0123456" elsewhere',
        )


def _backup(parsed: argparse.Namespace) -> int:
    from bot.commands.keep import backup

    return backup(parsed.config, parsed.file)


def _restored(parsed: argparse.Namespace) -> int:
    from bot.commands.keep import restored

    return restored(parsed.config, moved=parsed.moved)


def _export(parsed: argparse.Namespace) -> int:
    from bot.commands.records import export

    return export(parsed.config, parsed.session, parsed.person)


def _delete(parsed: argparse.Namespace) -> int:
    from bot.commands.records import delete

    return delete(parsed.config, parsed.session, parsed.person, parsed.reason)
