"""The arguments of `kortex init`. What it does: `bot.commands.init`."""

import argparse
from collections.abc import Callable

from bot.commands.init_choices import MODELS, MODES, SLACK_API, TRIAGE

TEXT = "ask a few questions and write a first kortex.toml"


def add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    add_command: Callable[..., argparse.ArgumentParser],
) -> None:
    """Add it. `add_command` makes one with `--config`, here the file to write."""
    parser = add_command(commands, "init", _init, TEXT)
    parser.add_argument("--force", action="store_true", help="replace a configuration that exists")
    parser.add_argument("--slack", choices=MODES, help="how Slack is reached (socket)")
    parser.add_argument(
        "--bot-token", metavar="VARIABLE", help="holds the bot token (SLACK_BOT_TOKEN)"
    )
    parser.add_argument(
        "--app-token", metavar="VARIABLE", help="holds socket mode's app token (SLACK_APP_TOKEN)"
    )
    parser.add_argument(
        "--signing-secret",
        metavar="VARIABLE",
        help="holds http mode's signing secret (SLACK_SIGNING_SECRET)",
    )
    parser.add_argument("--logs", metavar="URL", help='the address of Loki, or "none"')
    parser.add_argument(
        "--metrics", metavar="URL", help='the address of Prometheus or VictoriaMetrics, or "none"'
    )
    parser.add_argument(
        "--confirm",
        metavar="WHO",
        help="who may confirm: a user group by name (@sre, looked up with the bot token), people by "
        'id (U0123ABCD), several with commas, or "none"',
    )
    parser.add_argument(
        "--products",
        metavar="NAMES",
        help="what incident channels are about, such as checkout,web (all): a question that names one "
        "is answered about that one, one that names none about all of them",
    )
    parser.add_argument(
        "--provider",
        choices=(*MODELS, TRIAGE),
        help="the model that answers (one whose key is in the environment, else triage, which is none)",
    )
    parser.add_argument(
        "--api-base-url",
        default=SLACK_API,
        metavar="URL",
        help="another address of Slack's Web API, as `kortex demo --workspace` prints one",
    )
    parser.set_defaults(refuse=parser.error)


def _init(parsed: argparse.Namespace) -> int:
    from bot.commands.init import init

    return init(parsed)
