"""The arguments of `kortex chat`. What it does lives in `bot.commands.chat`."""

import argparse
from pathlib import Path

_TEXT = "talk with a running Kortex in this terminal, over its HTTP API"
_EPILOG = """\
The token says who you are: `kortex token create NAME` makes one, where the service runs. It is read from
KORTEX_TOKEN or from ~/.config/kortex/token, which nobody else may read. Lines of a pipe are asked one
after the other. Exit 0, 1 when a question got no answer, 2 for what cannot be used, 130 after Ctrl-C.
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `chat`, which works without a configuration file."""
    chat = commands.add_parser(
        "chat",
        help=_TEXT,
        description=_TEXT[0].upper() + _TEXT[1:] + ".",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    chat.add_argument(
        "--url",
        default=None,
        help="where the service listens (default: KORTEX_URL, else what [http] of the configuration "
        "says, else http://127.0.0.1:3000)",
    )
    chat.add_argument(
        "--config",
        type=Path,
        default=Path("kortex.toml"),
        metavar="PATH",
        help="the service's configuration, where it is at hand (default: ./kortex.toml)",
    )
    chat.add_argument(
        "--token-file", type=Path, default=None, metavar="FILE", help="a file that holds the token"
    )
    chat.add_argument(
        "--channel",
        default="incident-console",
        metavar="NAME",
        help="the channel whose rules hold (default: %(default)s)",
    )
    chat.add_argument(
        "--session", default="", metavar="ID", help="go on with a conversation of yours"
    )
    chat.set_defaults(run=_chat)


def _chat(parsed: argparse.Namespace) -> int:
    from bot.commands.chat.terminal import chat

    return chat(parsed.url, parsed.config, parsed.token_file, parsed.channel, parsed.session)
