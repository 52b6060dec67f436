"""The `kortex` command: arguments, exit codes, and nothing that a library module should know.

Exit 0 ok, 1 failed, 2 usage or configuration, 141 nobody read the output to its end. Heavy modules are imported by the command that needs
them, so that `--help` answers at once.
"""

import argparse
import errno
import sys
from collections.abc import Sequence
from pathlib import Path

from bot.commands import audit_arguments as cli_audit
from bot.commands import chat_arguments as cli_chat
from bot.commands import completion
from bot.commands import demo_arguments as cli_demo
from bot.commands import eval_arguments as cli_eval
from bot.commands import init_arguments as cli_init
from bot.commands import keep_arguments as cli_keep
from bot.commands import token_arguments as cli_token
from bot.commands import usage_arguments as cli_usage
from bot.commands.ending import FAILED, OK, READER_LEFT, discard, reader_left
from bot.upkeep.signals import Signals, heeding

MOST_WORKERS = 16  # each has its part of Slack's limits and some 50 connections to PostgreSQL

EPILOG = """\
start here:
  kortex demo                          a recorded incident in a local workspace; no account, no key
  kortex demo --ask "why is checkout slow?" --json
  kortex init                          a few questions, and a first kortex.toml
  kortex check --config kortex.toml    what of your configuration works, and what does not
  kortex run --config kortex.toml      serve your Slack workspace

The model never acts: it reads, and it may propose. People with the channel's role confirm.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit."""
    parsed = _parser().parse_args(arguments)
    try:
        code = _run_to_its_end(parsed)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _run_to_its_end(parsed: argparse.Namespace) -> int:
    """The exit code. A reader that had enough (`| head -1`) ends the command without a word."""
    try:
        code: int = parsed.run(parsed)
        if sys.stdout is not None:  # started with it closed
            sys.stdout.flush()
    except BrokenPipeError:
        if not reader_left():
            raise  # another pipe than ours
        discard()
        return READER_LEFT
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"kortex: cannot write: {error.strerror}", file=sys.stderr)
        discard()
        return FAILED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kortex",
        description="Ask your incident channel why. Kortex investigates with read-only tools and "
        "answers in the thread; it may propose an action, and only people decide.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    cli_demo.add(commands)
    cli_init.add(commands, _add)
    _add_run(commands)
    _add_check(commands)
    _add(commands, "migrate", _migrate, "bring the database's schema to this version")
    ask = _add(commands, "ask", _ask, "ask one question here, without Slack")
    ask.add_argument("question", help='for instance "why is checkout slow?"')
    ask.add_argument(
        "--session",
        default="incident-console",
        metavar="NAME",
        help="the channel name that rules and toolsets match (default: %(default)s)",
    )
    ask.add_argument("--json", action="store_true", help="answer, tool calls, usage as JSON")
    ask.add_argument(
        "--time-zone",
        default="",
        metavar="NAME",
        help="clock times of the question are read in it (default: this machine's)",
    )
    providers = _add(
        commands, "providers", _providers, "the model backends and whether each can be used"
    )
    providers.add_argument("--json", action="store_true", help="the state of each as JSON")
    tools = _add(
        commands,
        "tools",
        _tools,
        "every tool: its toolsets, how its calls went, what was not loaded",
    )
    tools.add_argument("--json", action="store_true", help="the same as JSON")
    cli_chat.add(commands)
    cli_audit.add(commands, _add)
    cli_usage.add(commands, _add)
    cli_keep.add(commands, _add)
    cli_eval.add(commands, _add)
    cli_token.add(commands, _add)
    _add_completion(commands)
    return parser


def _add_run(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "serve the Slack workspace of the configuration until stopped"
    _add(commands, "run", _run, text).add_argument(
        "--workers",
        type=_workers,
        default=1,
        metavar="N",
        help="so many processes on one port, one a core; needs PostgreSQL (default: %(default)s)",
    )


def _add_check(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    check = _add(
        commands, "check", _check, "try each part of the configuration; exit 1 if one fails"
    )
    check.add_argument("--json", action="store_true", help="the table as JSON")
    check.add_argument(
        "--offline",
        action="store_true",
        help="only read the configuration: nothing is asked, no packet leaves",
    )
    check.add_argument(
        "--plugin",
        type=Path,
        metavar="FILE",
        help="validate this manifest and call it once; needs no other configuration",
    )
    check.add_argument(
        "--arguments",
        default="",
        metavar="JSON",
        help="what the plugin is called with (default: the examples of its parameters)",
    )


def _add_completion(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "print a script that completes kortex in bash or zsh"
    shell = commands.add_parser(
        "completion",
        help=text,
        description=f"{text[0].upper()}{text[1:]}: source <(kortex completion bash)",
    )
    shell.add_argument("shell", choices=completion.SHELLS)
    shell.set_defaults(run=_completion)


class _Version(argparse.Action):
    """`--version`, without importing package metadata for every other command."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"kortex {version('kortex')}")
        parser.exit()


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: object,
    text: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument(
        "--config",
        type=Path,
        default=Path("kortex.toml"),
        metavar="PATH",
        help="the configuration (default: ./kortex.toml)",
    )
    parser.set_defaults(run=run)
    return parser


def _completion(parsed: argparse.Namespace) -> int:
    print(completion.script(_parser(), parsed.shell), end="")
    return OK


def _workers(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_WORKERS):
        raise argparse.ArgumentTypeError(f"must be a number from 1 to {MOST_WORKERS}")
    return int(text)


def _run(parsed: argparse.Namespace) -> int:
    def serve(signals: Signals) -> int:
        if parsed.workers > 1:
            from bot.commands.workers import run_workers

            return run_workers(parsed.config, parsed.workers, signals)
        from bot.commands.verbs import run

        return run(parsed.config, signals)

    return heeding(Signals(), serve)


def _check(parsed: argparse.Namespace) -> int:
    from bot.commands.verbs import check, check_plugin

    if parsed.plugin is not None:
        return check_plugin(parsed.config, parsed.plugin, parsed.arguments)
    return check(parsed.config, as_json=parsed.json, offline=parsed.offline)


def _migrate(parsed: argparse.Namespace) -> int:
    from bot.commands.verbs import migrate

    return migrate(parsed.config)


def _ask(parsed: argparse.Namespace) -> int:
    from bot.commands.verbs import ask

    zone, session = parsed.time_zone, parsed.session
    return ask(parsed.config, parsed.question, session, zone, as_json=parsed.json)


def _providers(parsed: argparse.Namespace) -> int:
    from bot.commands.verbs import providers

    return providers(parsed.config, as_json=parsed.json)


def _tools(parsed: argparse.Namespace) -> int:
    from bot.commands.verbs import tools

    return tools(parsed.config, as_json=parsed.json)
