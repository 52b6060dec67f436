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
    report.add_argument(
        "session",
        metavar="SESSION",
        nargs="?",
        help="its id, its name (the newest of it), or a link of its thread (with --demo default: the newest of all)",
    )
    report.add_argument(
        "--output",
        default="",
        metavar="FILE",
        help="where to (default: NAME-DATE.md here; - is standard output)",
    )
    _add_record(under, add_command)
    report.add_argument("--post", action="store_true", help="also post it in the session's thread")
    _add_demo(report)


def _add_demo(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--demo",
        action="store_true",
        help="of the `kortex demo` that runs, or ran last, on a copy; its data stays in "
        "$XDG_STATE_HOME/kortex/demo (else ~/.local/state) until the next demo starts",
    )
    command.set_defaults(refuse=command.error)


def _add_record(
    under: "argparse._SubParsersAction[argparse.ArgumentParser]",
    add_command: Callable[..., argparse.ArgumentParser],
) -> None:
    record = add_command(
        under,
        "record",
        _record,
        "write what the backends know of an incident, redacted, as a case for `kortex eval`",
    )
    when = '"2h" ago, "2026-11-21T14:00" (UTC) or an ISO time'
    record.add_argument("--since", required=True, metavar="WHEN", help=f"when it began: {when}")
    record.add_argument(
        "--until",
        default="",
        metavar="WHEN",
        help="the moment of the question (default: now); nothing later is in the case",
    )
    record.add_argument(
        "--products",
        default="",
        metavar="A,B,C",
        help="who takes part (default: all products of the configured channels)",
    )
    record.add_argument(
        "--before",
        default="24h",
        metavar="TIME",
        help="how much of the time before, to compare with (default: %(default)s)",
    )
    record.add_argument("--asked", default="", metavar="QUESTION", help="what people asked then")
    record.add_argument(
        "--set", default="own", metavar="NAME", help="the set it is counted in (default: own)"
    )
    record.add_argument(
        "--output",
        default="",
        metavar="FOLDER",
        help="where to (default: incidents/DATE-TIME-PRODUCT; never over another)",
    )
    record.add_argument(
        "--channel",
        default="incident-console",
        metavar="NAME",
        help="the channel whose backends are read (default: %(default)s)",
    )


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
    _add_demo(verify)
    seal = add_command(
        under,
        "seal",
        _seal,
        "accept a trail that does not verify (begun without a key, restored, tampered with) as it "
        "is, on record; stop every Kortex first",
    )
    seal.add_argument("--reason", required=True, metavar="TEXT", help="written into the trail")
    export = add_command(under, "export", _export, "print rows, one JSON object a line")
    whose = "only this session's rows: its id, its name (the newest of it), or a link of its thread"
    _one_of(export, whose, ("--session", "SESSION"), ("--since", "WHEN"))
    export.add_argument(
        "--jsonl", action="store_true", help="one JSON object a line (the only format, and default)"
    )
    erase = add_command(
        under, "erase", _erase, "empty the content of rows; the rows and the chain stay"
    )
    _one_of(erase, "this session's rows, by id", ("--session", "ID"), ("--person", "PERSON"))
    erase.add_argument("--reason", required=True, metavar="TEXT", help="written into the trail")


def _one_of(
    parser: argparse.ArgumentParser, text: str, first: tuple[str, str], second: tuple[str, str]
) -> None:
    group = parser.add_mutually_exclusive_group(required=True)
    other = {
        "--since": 'rows from then on: "24h", "2026-11-21", or an ISO time',
        "--person": 'the rows whose actor is this person: "U0123456", elsewhere "T0123456/U0123456"',
    }
    group.add_argument(first[0], default="", metavar=first[1], help=text)
    group.add_argument(second[0], default="", metavar=second[1], help=other[second[0]])


def _verify(parsed: argparse.Namespace) -> int:
    from bot.commands.audit import verify

    return _on_either(parsed, lambda config: verify(config, parsed.checkpoint, as_json=parsed.json))


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
    if parsed.session is None and not parsed.demo:
        parsed.refuse("the following arguments are required: SESSION")
    if parsed.post and parsed.demo:
        parsed.refuse("--post is of a workspace that goes on: it does not go with --demo")
    from bot.commands.incident import write_report

    return _on_either(
        parsed,
        lambda config: write_report(config, parsed.session, parsed.output, post=parsed.post),
    )


def _on_either(parsed: argparse.Namespace, command: Callable[[Path], int]) -> int:
    """With the configuration that was given, or the demo's."""
    if not parsed.demo:
        return command(parsed.config)
    from bot.commands.demo_state import on_demo

    return on_demo(command)


def _record(parsed: argparse.Namespace) -> int:
    from bot.commands.incident_record import Wanted, record

    wanted = Wanted(
        since=parsed.since,
        until=parsed.until,
        products=parsed.products,
        before=parsed.before,
        asked=parsed.asked,
        set=parsed.set,
        output=parsed.output,
        channel=parsed.channel,
    )
    return record(parsed.config, wanted)
