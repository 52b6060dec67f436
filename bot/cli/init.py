"""`kortex init`: a few questions, and a first `kortex.toml` that `kortex check` passes."""

import asyncio
import os
import re
import secrets
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final, TypeVar

import click

from bot.cli.config_template import (
    ALL,
    AUDIT_KEY,
    MODELS,
    MODES,
    NONE,
    SLACK_API,
    TRIAGE,
    Answers,
    Confirming,
    address,
    configuration,
    mode,
    products,
    variable,
    wanted,
)
from bot.cli.exit_codes import FAILED, OK, USAGE
from bot.cli.invocation import complain, config_option
from bot.settings.environment import environment
from bot.settings.reading import parse

Read = TypeVar("Read")
Given = Mapping[str, str | None]  # options by name; None: not given

_VARIABLES: Final = ".env"


@click.command()
@click.option("--force", is_flag=True, help="Replace a configuration that exists.")
@click.option("--slack", type=click.Choice(MODES), help="How Slack is reached (socket).")
@click.option(
    "--bot-token", metavar="VARIABLE", help="The variable of the bot token (SLACK_BOT_TOKEN)."
)
@click.option(
    "--app-token",
    metavar="VARIABLE",
    help="The variable of socket mode's app token (SLACK_APP_TOKEN).",
)
@click.option(
    "--signing-secret",
    metavar="VARIABLE",
    help="The variable of http mode's signing secret (SLACK_SIGNING_SECRET).",
)
@click.option("--logs", metavar="URL", help='The address of Loki, or "none".')
@click.option(
    "--metrics", metavar="URL", help='The address of Prometheus or VictoriaMetrics, or "none".'
)
@click.option(
    "--confirm",
    metavar="WHO",
    help="Who may confirm: a user group by name (@sre, looked up with the bot token), people by id "
    '(U0123ABCD), several with commas, or "none".',
)
@click.option(
    "--products",
    metavar="NAMES",
    help="The products of incident channels, such as checkout,web (all). A question that names no "
    "product is about all of them.",
)
@click.option(
    "--provider",
    type=click.Choice((*MODELS, TRIAGE)),
    help="The model that answers (default: one with its key in the environment, else triage without a model).",
)
@click.option(
    "--api-base-url",
    default=SLACK_API,
    metavar="URL",
    help="Another address of Slack's Web API, as `kortex demo --workspace` prints one.",
)
@config_option
def init(config: Path, force: bool, **given: str | None) -> int:
    """Ask a few questions and write a first kortex.toml.

    Options answer questions in advance. Secrets stay in environment variables; the file names them.

    \b
    Examples:
      kortex init
      kortex init --slack socket --logs http://loki:3100 --metrics none --confirm @sre
    """
    if config.suffix == _VARIABLES:
        words = "files of that name hold variables; choose another"
        raise click.BadParameter(words, param_hint=f"--config {config}")
    if os.path.lexists(config) and not force:
        words = f"{config} exists. --force replaces it, --config PATH writes another."
        return _end(USAGE, f"{words} Nothing was written.")
    terminal = sys.stdin is not None and sys.stdin.isatty()
    needed = [name for name in ("logs", "metrics", "confirm") if given[name] is None]
    if needed and not terminal:
        missing = ", ".join(f"--{name}" for name in needed)
        words = f'missing {missing}: there is no terminal to ask ("{NONE}" is a valid answer)'
        raise click.UsageError(words, click.get_current_context())
    try:
        answers = _answers(given, _Asking(given, terminal=terminal))
    except ValueError as error:
        return _end(USAGE, f"{error}. Nothing was written.")
    except EOFError:
        return _end(USAGE, "input ended. Nothing was written.")
    try:
        return _write(config, answers, force=force)
    except OSError as error:
        why = f"{error.filename or config}: {error.strerror}"
        return _end(FAILED, f"{config} was not written ({why}).")


def _end(code: int, words: str) -> int:
    complain(words)
    return code


class _Asking:
    def __init__(self, given: Given, *, terminal: bool) -> None:
        self._given = given
        self._terminal = terminal

    def of(self, option: str, question: str, usual: str, read: Callable[[str], Read]) -> Read:
        text = self._given[option]
        if text is not None or not self._terminal:
            try:
                return read(usual if text is None else text)
            except ValueError as error:
                raise ValueError(f"--{option.replace('_', '-')} {error}") from error
        while True:
            typed = input(f"{question} [{usual}]: ").strip()
            try:
                return read(typed or usual)
            except ValueError as error:
                print(f"  {error}")


def _answers(given: Given, asking: _Asking) -> Answers:
    env = environment()
    slack = asking.of("slack", "Slack mode, socket or http", "socket", mode)
    bot = asking.of("bot_token", "Variable of the bot token (xoxb-…)", "SLACK_BOT_TOKEN", variable)
    if slack == "socket":
        other = asking.of(
            "app_token", "Variable of the app token (xapp-…)", "SLACK_APP_TOKEN", variable
        )
    else:
        other = asking.of(
            "signing_secret", "Variable of the signing secret", "SLACK_SIGNING_SECRET", variable
        )
    api_base_url = asking.of("api_base_url", "", "", address) or SLACK_API
    token = env.get(bot, "").strip()

    def confirming(text: str) -> Confirming:
        return _looked_up(text, token, api_base_url, bot)

    keyed = [name for name, (key, _) in MODELS.items() if env.get(key, "").strip()]
    return Answers(
        mode=slack,
        bot_token=bot,
        other_secret=other,
        api_base_url=api_base_url,
        logs=asking.of("logs", "Address of Loki, as http://loki:3100", NONE, address),
        metrics=asking.of(
            "metrics", "Address of Prometheus or VictoriaMetrics, as http://host:9090", NONE, address
        ),
        products=asking.of("products", "Products of incident channels, as checkout, web", ALL, products),
        provider=given["provider"] or next(iter(keyed), TRIAGE),
        confirming=asking.of(
            "confirm", "Who may confirm: a user group as @sre, or people as U0123ABCD", NONE, confirming
        ),
    )  # fmt: skip


def _looked_up(text: str, token: str, api_base_url: str, variable_name: str) -> Confirming:
    known, names = wanted(text)
    if not names:
        return known
    if not token:
        ids = "its id (S0123ABCD: People → User groups → the group → … → Copy group ID)"
        raise ValueError(
            f"cannot be looked up without the token: export {variable_name} first, or give {ids}"
        )
    found = asyncio.run(_groups(names, token, api_base_url))
    return replace(known, groups={**known.groups, **found})


async def _groups(names: Sequence[str], token: str, api_base_url: str) -> Mapping[str, str]:
    from bot.slack.api.web_api import create_api, slack_session
    from bot.slack.roles.group_names import NoSuchGroup, group_id

    async with slack_session() as session:
        api = create_api(token, api_base_url, session)
        try:
            return {await group_id(api, name): name for name in names}
        except NoSuchGroup as error:
            raise ValueError(f"{', '.join(names)}: {error}") from error


def _write(config: Path, answers: Answers, *, force: bool) -> int:
    """The file of variables first: it holds the audit key, which has to be there before a first run."""
    env = environment()
    text = configuration(answers)
    parse(text, str(config), env)  # what would be refused later is not written
    variables = config.with_suffix(_VARIABLES)
    told = _keep_key(variables, answers, env)
    if force:
        _replace(config, text)
    else:
        with config.open("x", encoding="utf-8") as file:
            file.write(text)
    print(f"Wrote {config}. {told}")
    missing = [name for name in answers.variables if not env.get(name, "").strip()]
    print("Next:")
    if missing:
        print(f"  put {', '.join(missing)} into {variables}")
    print(f"  set -a; . {shlex.quote(str(variables.absolute()))}; set +a")
    print("  kortex check, then kortex run")
    return OK


def _keep_key(variables: Path, answers: Answers, env: Mapping[str, str]) -> str:
    """Make the audit key once, readable by its owner alone. What exists is left as it is."""
    lines = [
        f"# What {variables.stem}.toml takes from the environment. Yours alone: never commit it.",
        *([] if env.get(AUDIT_KEY) else [f"{AUDIT_KEY}={secrets.token_hex(32)}"]),
        *(f"# {name}=" for name in answers.variables),
    ]
    try:
        handle = os.open(variables, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        kept = variables.read_text(encoding="utf-8", errors="replace")
        has_key = re.search(rf"^[^#\n]*\b{AUDIT_KEY}=", kept, re.MULTILINE)
        missing = "" if has_key else f" Add {AUDIT_KEY} to it before the first run."
        return f"{variables} already existed and was not changed.{missing}"
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return f"{variables} has the key of the audit log: keep a copy of it elsewhere."


def _replace(config: Path, text: str) -> None:
    """Replace the file whole or not at all: a reader sees the old or the new one."""
    with NamedTemporaryFile(
        "w", encoding="utf-8", dir=config.parent, prefix=f".{config.name}.", delete=False
    ) as file:
        written = Path(file.name)
    try:
        written.write_text(text, encoding="utf-8")
        written.chmod(config.stat().st_mode & 0o777 if config.exists() else 0o644)
        written.replace(config)
    except OSError:
        written.unlink(missing_ok=True)
        raise
