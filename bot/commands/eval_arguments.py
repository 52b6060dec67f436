"""The arguments of `kortex eval`. What it does: `bot.commands.eval`."""

import argparse
from collections.abc import Callable
from pathlib import Path


def add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    add_command: Callable[..., argparse.ArgumentParser],
) -> None:
    """Add it. `add_command` makes one with `--config`."""
    command = add_command(
        commands, "eval", _eval, "ask recorded incidents and say how often the answer was right"
    )
    command.add_argument(
        "packs", nargs="+", type=Path, metavar="PACK", help="a folder of cases, or a .tar.xz of one"
    )
    command.add_argument(
        "--provider",
        default="",
        metavar="NAME",
        help="who answers, and nobody else (default: the configuration's; triage without one)",
    )
    command.add_argument(
        "--metrics-url",
        default="",
        metavar="URL",
        help="load each case's metrics into this VictoriaMetrics and ask through it",
    )
    command.add_argument(
        "--logs-url", default="", metavar="URL", help="and its log lines into this Loki"
    )
    command.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help="compare with the --json of an earlier run, case by case; exit 1 when it got worse",
    )
    command.add_argument("--limit", type=_positive, metavar="N", help="only the first N cases")
    command.add_argument("--json", action="store_true", help="figures and answers as JSON")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _eval(parsed: argparse.Namespace) -> int:
    from bot.commands.eval import Wanted, evaluate

    wanted = Wanted(
        packs=parsed.packs,
        provider=parsed.provider,
        limit=parsed.limit,
        as_json=parsed.json,
        metrics_url=parsed.metrics_url,
        logs_url=parsed.logs_url,
        against=parsed.against,
    )
    return evaluate(parsed.config, wanted)
