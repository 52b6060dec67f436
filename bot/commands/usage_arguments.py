"""The arguments of `kortex budget` and `kortex usage ...`. What they do: `bot.commands.usage`."""

import argparse
from collections.abc import Callable


def add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    add_command: Callable[..., argparse.ArgumentParser],
) -> None:
    """Add both. `add_command` makes one with `--config`."""
    budget = add_command(commands, "budget", _budget, "what was spent today, by whom, on what")
    budget.add_argument("--json", action="store_true", help="whole micro-dollars, as JSON")
    text = "what every model call used and cost"
    parser = commands.add_parser("usage", help=text, description=text[0].upper() + text[1:] + ".")
    under = parser.add_subparsers(metavar="COMMAND", required=True)
    export = add_command(
        under, "export", _export, "print every round of a model, one JSON object a line"
    )
    export.add_argument(
        "--jsonl", action="store_true", help="one JSON object a line (the only format, and default)"
    )
    when = '"24h" ago, "2026-11-21" or an ISO time'
    export.add_argument("--since", default="", metavar="WHEN", help=f"from then on: {when}")
    export.add_argument("--until", default="", metavar="WHEN", help=f"before then: {when}")


def _budget(parsed: argparse.Namespace) -> int:
    from bot.commands.usage import budget

    return budget(parsed.config, as_json=parsed.json)


def _export(parsed: argparse.Namespace) -> int:
    from bot.commands.usage import export

    return export(parsed.config, parsed.since, parsed.until)
