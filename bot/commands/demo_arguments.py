"""The arguments of `kortex demo`, and which of them go together."""

import argparse
from typing import Final

from bot.upkeep.signals import Signals, heeding

LAST_PORT: Final = 65535
LISTENING: Final = ("127.0.0.1", "0.0.0.0")  # noqa: S104 - asked for


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `demo`, which needs no configuration."""
    text = "start Kortex on recorded incidents in a local workspace, and print its URL"
    parser = commands.add_parser("demo", help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("--ask", metavar="QUESTION", help="run one question headless and exit")
    parser.add_argument(
        "--channel",
        choices=("incident-checkout", "incident-payments", "incident-quiet"),
        help="with --ask: which of the recorded incidents (default: incident-checkout)",
    )
    parser.add_argument("--json", action="store_true", help="with --ask: print JSON")
    parser.add_argument(
        "--port",
        type=_port,
        metavar="N",
        help="the port of the page (default: 8420, or any free one)",
    )
    parser.add_argument(
        "--host",
        choices=LISTENING,
        help="where the page listens (default: 127.0.0.1); 0.0.0.0 in a container, whose port is "
        "then published to this machine alone: whoever reaches the page can be anybody in it",
    )
    parser.add_argument(
        "--workspace",
        action="store_true",
        help="only the local workspace: a Slack on this machine for a kortex.toml of your own",
    )
    parser.set_defaults(run=_demo, refuse=parser.error)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > LAST_PORT:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no port: give 0 (any free one) to {LAST_PORT}"
        )
    return int(text)


def _demo(parsed: argparse.Namespace) -> int:
    if parsed.ask is not None:
        if parsed.port is not None:
            parsed.refuse("--port is of the page, and --ask has none")
        if parsed.host is not None:
            parsed.refuse("--host is of the page, and --ask has none")
        if parsed.workspace:
            parsed.refuse("--workspace is a page, and --ask has none")
        from bot.commands.demo import demo_ask

        return demo_ask(parsed.ask, parsed.channel or "incident-checkout", as_json=parsed.json)
    for option in ("channel", "json"):
        if getattr(parsed, option):
            parsed.refuse(f"--{option} goes with --ask; on the page you choose a channel yourself")

    def serve(signals: Signals) -> int:
        from bot.commands.demo import demo, demo_workspace

        serving = demo_workspace if parsed.workspace else demo
        return serving(parsed.port, parsed.host, signals)

    return heeding(Signals(hangup_stops=True), serve)
