"""The arguments of `kortex token ...`. What they do lives in `bot.commands.token`."""

import argparse
from collections.abc import Callable


def add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    add_command: Callable[..., argparse.ArgumentParser],
) -> None:
    """Add `token` and what is under it. `add_command` makes one with `--config`."""
    text = "tokens of people and services that call over HTTP"
    parser = commands.add_parser("token", help=text, description=text[0].upper() + text[1:] + ".")
    under = parser.add_subparsers(metavar="COMMAND", required=True)
    create = add_command(under, "create", _create, "make a token; it is shown once")
    create.add_argument("name", metavar="NAME", help="whose it is: alice, ci")
    create.add_argument(
        "--service", action="store_true", help="of a program, which never confirms anything"
    )
    create.add_argument(
        "--role", action="append", default=[], metavar="ROLE", help="of [roles.ROLE]; repeatable"
    )
    create.add_argument(
        "--slack",
        default="",
        metavar="USER",
        help="the person's Slack user id (U0123, or T0123/U0123): their roles there count",
    )
    create.add_argument(
        "--expires", default="", metavar="TIME", help="such as 12h or 90d (default: never)"
    )
    listed = add_command(under, "list", _list, "every token, whose it is, and when it was used")
    for command in (create, listed):
        command.add_argument("--json", action="store_true", help="the same as JSON")
    revoke = add_command(under, "revoke", _revoke, "refuse a token from now on, everywhere")
    revoke.add_argument("token", metavar="ID", help="its id, such as t_0123456789ab")


def _create(parsed: argparse.Namespace) -> int:
    from bot.commands.token import Wanted, create

    wanted = Wanted(parsed.name, parsed.service, tuple(parsed.role), parsed.slack, parsed.expires)
    return create(parsed.config, wanted, as_json=parsed.json)


def _list(parsed: argparse.Namespace) -> int:
    from bot.commands.token import show_all

    return show_all(parsed.config, as_json=parsed.json)


def _revoke(parsed: argparse.Namespace) -> int:
    from bot.commands.token import revoke

    return revoke(parsed.config, parsed.token)
