"""The arguments of `kortex audit ...` and `kortex incident ...`.

What they do lives in `bot.commands.audit` and `bot.commands.incident`.
"""

import argparse
from collections.abc import Callable
from pathlib import Path


def add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    add_command: Callable[..., argparse.ArgumentParser],
) -> None:
    """Add `audit`, `incident` and what is under them. `add_command` makes one with `--config`."""
    _add_audit(commands, add_command)
    _add_incident(commands, add_command)


def _add_incident(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    add_command: Callable[..., argparse.ArgumentParser],
) -> None:
    text = "what is on record about one incident"
    parser = commands.add_parser(
        "incident", help=text, description=text[0].upper() + text[1:] + "."
    )
    under = parser.add_subparsers(metavar="COMMAND", required=True)
    report = add_command(
        under,
        "report",
        _report,
        "write a session's post-incident report: timeline, decisions, evidence, cost, audit range",
    )
    report.add_argument("session", metavar="SESSION", help="its id, or its name: the newest of it")
    report.add_argument(
        "--output",
        default="",
        metavar="FILE",
        help="where to (default: NAME-DATE.md here; - is standard output)",
    )
    report.add_argument("--post", action="store_true", help="also post it in the session's thread")


def _add_audit(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    add_command: Callable[..., argparse.ArgumentParser],
) -> None:
    text = "the trail of everything that was decided: verify it, export it, erase content from it"
    parser = commands.add_parser("audit", help=text, description=text[0].upper() + text[1:] + ".")
    under = parser.add_subparsers(metavar="COMMAND", required=True)
    verify = add_command(
        under, "verify", _verify, "read the whole chain; name the first bad row and exit 1"
    )
    verify.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="checkpoints kept elsewhere: a file, a log, a copied Slack message; finds a cut tail",
    )
    verify.add_argument("--json", action="store_true", help="the result as JSON")
    seal = add_command(
        under,
        "seal",
        _seal,
        "take a trail that does not verify (begun without a key, restored, tampered with) as it "
        "stands; stop every Kortex first",
    )
    seal.add_argument("--reason", required=True, metavar="TEXT", help="written into the trail")
    export = add_command(under, "export", _export, "print rows, one JSON object a line")
    _one_of(export, "only this session's rows, by id", ("--session", "ID"), ("--since", "WHEN"))
    export.add_argument(
        "--jsonl", action="store_true", help="one JSON object a line (the only format, and default)"
    )
    erase = add_command(
        under, "erase", _erase, "empty the content of rows; the rows and the chain stay"
    )
    _one_of(erase, "this session's rows, by id", ("--session", "ID"), ("--person", "USER_ID"))
    erase.add_argument("--reason", required=True, metavar="TEXT", help="written into the trail")


def _one_of(
    parser: argparse.ArgumentParser, text: str, first: tuple[str, str], second: tuple[str, str]
) -> None:
    group = parser.add_mutually_exclusive_group(required=True)
    other = {
        "--since": 'rows from then on: "24h", "2026-11-21", or an ISO time',
        "--person": "the rows whose actor is this person",
    }
    group.add_argument(first[0], default="", metavar=first[1], help=text)
    group.add_argument(second[0], default="", metavar=second[1], help=other[second[0]])


def _verify(parsed: argparse.Namespace) -> int:
    from bot.commands.audit import verify

    return verify(parsed.config, parsed.checkpoint, as_json=parsed.json)


def _seal(parsed: argparse.Namespace) -> int:
    from bot.commands.audit import seal

    return seal(parsed.config, parsed.reason)


def _export(parsed: argparse.Namespace) -> int:
    from bot.commands.audit import export

    return export(parsed.config, parsed.session, parsed.since)


def _erase(parsed: argparse.Namespace) -> int:
    from bot.commands.audit import erase

    return erase(parsed.config, parsed.person, parsed.session, parsed.reason)


def _report(parsed: argparse.Namespace) -> int:
    from bot.commands.incident import write_report

    return write_report(parsed.config, parsed.session, parsed.output, post=parsed.post)
