"""The `kortex` command: its table of commands, and exit codes.

Exit 0 ok, 1 failed, 2 usage or configuration, 130 after Ctrl-C, 141 when the reader of the output left.
A command's module is imported when the command runs, so that `kortex --help` answers at once.
"""

import errno
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from bot.cli.exit_codes import FAILED, INTERRUPTED, OK, READER_LEFT, discard, output_closed
from bot.settings.environment import environment

COMPLETION: Final = "_KORTEX_COMPLETE"  # click's own name for the program `kortex`

# Each command with its place and its line of help.
TABLE: Final[Mapping[str, tuple[str, str]]] = {
    "demo": ("demo:demo", "Try Kortex on recorded incidents in a local workspace."),
    "init": ("init:init", "Ask a few questions and write a first kortex.toml."),
    "check": ("check.command:check", "Try each part of the configuration."),
    "run": ("run:run", "Serve the configured workspace until stopped."),
    "chat": ("chat.command:chat", "Talk with a running Kortex in this terminal."),
    "ask": ("ask:ask", "Ask one question here, without a chat platform."),
    "providers": ("status:providers", "List the model providers and their state."),
    "tools": ("status:tools", "List the tools, their toolsets and their state."),
    "budget": ("usage:budget", "Show today's spending."),
    "usage": ("usage:usage", "Export what every model call used and cost."),
    "incident": ("incident:incident", "Write an incident's report, or record it for `eval`."),
    "eval": ("eval.command:evaluate", "Score the answers to recorded incidents."),
    "audit": ("audit:audit", "Verify, seal, export or erase the audit log."),
    "records": ("records:records", "Export or delete all data of one session or person."),
    "token": ("token:token", "Manage the tokens of people and programs that call over HTTP."),
    "backup": ("database:backup", "Copy the SQLite database, also while Kortex runs."),
    "restored": ("database:restored", "Mark this database as restored from a copy."),
    "migrate": ("database:migrate", "Bring the database's schema to this version."),
    "completion": ("", "Print a script that completes `kortex` in a shell."),
}

EPILOG: Final = """\
\b
Start here:
  kortex demo                          a recorded incident in a local workspace; no account, no key
  kortex demo --ask "why is checkout slow?" --json
  kortex init                          write a first kortex.toml from a few questions
  kortex check --config kortex.toml    try every part of your configuration
  kortex run --config kortex.toml      serve your Slack workspace

The model never acts: it reads and it can propose. People with the channel's role confirm.
"""


class LazyGroup(click.Group):
    """A group that imports a command's module when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(TABLE)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported; None for an unknown name."""
        place, _ = TABLE.get(cmd_name, ("", ""))
        if not place:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = place.partition(":")
        command: click.Command = getattr(import_module(f"bot.cli.{module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with a suggestion for a mistyped name."""
        name = args[0]
        close = get_close_matches(name, TABLE, n=1)
        if close and name not in TABLE and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The lines of TABLE, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in TABLE.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names of TABLE, and the options of `kortex` itself."""
        names = [
            CompletionItem(name, help=line)
            for name, (_, line) in TABLE.items()
            if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


@click.group("kortex", cls=LazyGroup, epilog=EPILOG, context_settings={"max_content_width": 100})
@click.version_option(package_name="kortex", message="kortex %(version)s")
def kortex() -> None:
    """Ask your incident channel why.

    Kortex investigates with read-only tools and answers in the thread. It may propose an action;
    only people decide.
    """


@kortex.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print a script that completes `kortex` in a shell.

    \b
    Load it in ~/.bashrc or ~/.zshrc:
      source <(kortex completion bash)
    """
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click brings all three
    click.echo(found(kortex, {}, "kortex", COMPLETION).source())
    return OK


def main(arguments: Sequence[str] | None = None) -> None:
    sys.exit(_exit_code(list(sys.argv[1:] if arguments is None else arguments)))


def _exit_code(arguments: list[str]) -> int:
    """The exit code of the command. It prints no error if the reader left (`| head -1`)."""
    try:
        code = _run(arguments)
        if sys.stdout is not None:  # None: started with a closed output
            sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        if not output_closed():
            raise  # of another pipe
        discard()
        return READER_LEFT
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"kortex: cannot write: {error.strerror}", file=sys.stderr)
        discard()
        return FAILED
    return code


def _run(arguments: list[str]) -> int:
    if instruction := environment().get(COMPLETION, ""):
        return shell_complete(kortex, {}, "kortex", COMPLETION, instruction)
    try:
        with kortex.make_context("kortex", arguments) as context:
            code: int = kortex.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return code
