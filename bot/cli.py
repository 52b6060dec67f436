"""The `kortex` command: arguments, exit codes, and nothing that a library module should know.

Exit 0 ok, 1 failed, 2 usage or configuration. Heavy modules are imported by the command that needs
them, so that `--help` answers at once.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bot.commands import audit_arguments as cli_audit
from bot.commands import eval_arguments as cli_eval
from bot.commands import usage_arguments as cli_usage
from bot.upkeep.signals import Signals

OK, FAILED, USAGE = 0, 1, 2

EPILOG = """\
start here:
  kortex demo                          a recorded incident in a local workspace; no account, no key
  kortex demo --ask "why is checkout slow?" --json
  kortex check --config kortex.toml    what of your configuration works, and what does not
  kortex run --config kortex.toml      serve your Slack workspace

The model never acts: it reads, and it may propose. People with the channel's role confirm.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit."""
    parsed = _parser().parse_args(arguments)
    try:
        sys.exit(parsed.run(parsed))
    except KeyboardInterrupt:
        sys.exit(130)


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
    _add_demo(commands)
    _add(commands, "run", _run, "serve the Slack workspace of the configuration until stopped")
    check = _add(
        commands, "check", _check, "say what of the configuration works; exit 1 if not all"
    )
    check.add_argument("--json", action="store_true", help="the table as JSON")
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
    providers = _add(
        commands, "providers", _providers, "the model backends and whether each can be used"
    )
    providers.add_argument("--json", action="store_true", help="the state of each as JSON")
    tools = _add(
        commands, "tools", _tools, "every tool: who has it, how it does, what was not loaded"
    )
    tools.add_argument("--json", action="store_true", help="the same as JSON")
    cli_audit.add(commands, _add)
    cli_usage.add(commands, _add)
    cli_eval.add(commands, _add)
    return parser


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


def _add_demo(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "start Kortex on recorded incidents in a local workspace, and print its URL"
    parser = commands.add_parser("demo", help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("--ask", metavar="QUESTION", help="run one question headless and exit")
    parser.add_argument(
        "--channel",
        default="incident-checkout",
        metavar="NAME",
        help="incident-checkout, incident-payments or incident-quiet (with --ask)",
    )
    parser.add_argument("--json", action="store_true", help="with --ask: print JSON")
    parser.add_argument("--port", type=int, default=8420, help="of the page (default: %(default)s)")
    parser.set_defaults(run=_demo)


def _demo(parsed: argparse.Namespace) -> int:
    if parsed.ask is not None:
        from bot.commands.demo import demo_ask

        return demo_ask(parsed.ask, parsed.channel, as_json=parsed.json)

    def serve(signals: Signals) -> int:
        from bot.commands.demo import demo

        return demo(parsed.port, signals)

    return _heeding(Signals(hangup_stops=True), serve)


def _run(parsed: argparse.Namespace) -> int:
    def serve(signals: Signals) -> int:
        from bot.commands.verbs import run

        return run(parsed.config, signals)

    return _heeding(Signals(), serve)


def _heeding(signals: Signals, serve: Callable[[Signals], int]) -> int:
    """Serve with signals that are taken before the imports, which last a second, and to the end."""
    signals.take()
    try:
        return serve(signals)
    finally:
        signals.ignore()


def _check(parsed: argparse.Namespace) -> int:
    from bot.commands.verbs import check, check_plugin

    if parsed.plugin is not None:
        return check_plugin(parsed.config, parsed.plugin, parsed.arguments)
    return check(parsed.config, as_json=parsed.json)


def _migrate(parsed: argparse.Namespace) -> int:
    from bot.commands.verbs import migrate

    return migrate(parsed.config)


def _ask(parsed: argparse.Namespace) -> int:
    from bot.commands.verbs import ask

    return ask(parsed.config, parsed.question, parsed.session, as_json=parsed.json)


def _providers(parsed: argparse.Namespace) -> int:
    from bot.commands.verbs import providers

    return providers(parsed.config, as_json=parsed.json)


def _tools(parsed: argparse.Namespace) -> int:
    from bot.commands.verbs import tools

    return tools(parsed.config, as_json=parsed.json)
