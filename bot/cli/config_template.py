"""The `kortex.toml` that `kortex init` writes, from its answers. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

SLACK_API: Final = "https://slack.com/api/"
MODES: Final = ("socket", "http")
# Each with the variable of its key and a model of the shipped table.
MODELS: Final[Mapping[str, tuple[str, str]]] = {
    "anthropic": ("ANTHROPIC_API_KEY", "claude-sonnet-5"),
    "openai": ("OPENAI_API_KEY", "gpt-5.6-sol"),
}
TRIAGE: Final = "triage"
AUDIT_KEY: Final = "KORTEX_AUDIT_KEY"
NONE: Final = "none"
ALL: Final = "all"

_PRODUCT: Final = re.compile(r"[A-Za-z0-9][\w./:-]{0,99}", re.ASCII)
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_GROUP: Final = re.compile(r"S[A-Z0-9]{8,}", re.ASCII)
_PERSON: Final = re.compile(r"[UW][A-Z0-9]{8,}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Confirming:
    """Who may confirm: user groups by id, with the name that each was found by; people by id."""

    groups: Mapping[str, str]
    people: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers. Variables are names, never values; an empty address means no backend."""

    mode: str
    bot_token: str
    other_secret: str
    api_base_url: str
    logs: str
    metrics: str
    provider: str
    products: Sequence[str]
    confirming: Confirming

    @property
    def variables(self) -> Sequence[str]:
        """What has to be in the environment for it."""
        key = [MODELS[self.provider][0]] if self.provider in MODELS else []
        return [self.bot_token, self.other_secret, *key]


def mode(text: str) -> str:
    """`socket` or `http`. Raises ValueError."""
    if text not in MODES:
        raise ValueError('is "socket" (no public address needed) or "http"')
    return text


def variable(text: str) -> str:
    """The name of an environment variable. Raises ValueError, also for a token itself."""
    if text.startswith(("xoxb-", "xapp-", "xoxp-")):
        raise ValueError("wants the name of a variable that holds the token, not the token")
    if text == NONE or not _VARIABLE.fullmatch(text):
        raise ValueError("wants the name of a variable, such as SLACK_BOT_TOKEN")
    return text


def address(text: str) -> str:
    """An HTTP address, "" for `none`. Raises ValueError."""
    if text in ("", NONE):
        return ""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or not text.isprintable() or " " in text or "${" in text:
        raise ValueError(f'wants an address such as http://host:3100, or "{NONE}"')
    if "@" in parts.netloc:
        raise ValueError("holds a password; leave it out, and set its keys in the file by ${NAME}")
    return text


def products(text: str) -> Sequence[str]:
    """`checkout, web`; none for `all`. Raises ValueError."""
    named = [one.strip() for one in text.split(",") if one.strip()]
    if not named or not all(map(_PRODUCT.fullmatch, named)):
        raise ValueError(
            f'wants names as your metrics have them, such as checkout, web, or "{ALL}"'
        )
    return [] if named == [ALL] else named


def wanted(text: str) -> tuple[Confirming, Sequence[str]]:
    """Read `@sre, U0123ABCD` into the ids given, and the group names to look up in Slack."""
    given = [one.strip() for one in text.split(",") if one.strip() and one.strip() != NONE]
    if not all(map(str.isprintable, given)):
        raise ValueError("wants names such as @sre, or ids such as U0123ABCD")
    groups = {one: one for one in given if _GROUP.fullmatch(one)}
    people = [one for one in given if _PERSON.fullmatch(one)]
    return Confirming(groups, people), [n for n in given if n not in groups and n not in people]


def configuration(answers: Answers) -> str:
    """The text of the file: valid TOML without a secret."""
    return "\n".join(
        (
            _HEAD,
            _slack(answers),
            _DATABASE,
            _llm(answers.provider),
            _backend("logs", "loki", "Grafana Loki", answers.logs, "http://loki:3100"),
            _backend(
                "metrics", "prometheus", "also VictoriaMetrics and Mimir", answers.metrics,
                "http://prometheus:9090",
            ),
            _confirm(answers.confirming, answers.products),
        )
    )  # fmt: skip


def _quoted(text: str | list[str]) -> str:
    return json.dumps(text, ensure_ascii=False)


_HEAD = """\
# Written by `kortex init`. Every other setting with its default: docs/kortex.example.toml.
# ${NAME} comes from the environment, so this file holds no secret. `kortex check` tries every part.
"""

_DATABASE = f"""\
[database]
url = "sqlite:///kortex.db"  # several processes: postgresql://user:password@host/kortex

[audit]
key = "${{{AUDIT_KEY}}}"  # seals the audit trail: set it before the first run, and keep a copy elsewhere
"""


def _slack(answers: Answers) -> str:
    other = "app_token" if answers.mode == "socket" else "signing_secret"
    lines = [
        "[slack]",
        f'mode = "{answers.mode}"',
        f'bot_token = "${{{answers.bot_token}}}"',
        f'{other} = "${{{answers.other_secret}}}"',
    ]
    if answers.api_base_url != SLACK_API:
        lines.append(f"api_base_url = {_quoted(answers.api_base_url)}")
    return "\n".join([*lines, ""])


def _llm(provider: str) -> str:
    name = provider if provider in MODELS else next(iter(MODELS))
    key, model = MODELS[name]
    off = "" if provider in MODELS else "# "
    why = (
        "when no model answers, triage does"
        if provider in MODELS
        else "no model; uncomment the lines below to use one"
    )
    return f"""\
[llm]
default_provider = "{provider}"  # {why}

{off}[llm.providers.{name}]
{off}api_key = "${{{key}}}"
{off}model = "{model}"
"""


def _backend(family: str, kind: str, what: str, url: str, usual: str) -> str:
    off = "" if url else "# "
    return f"""\
{off}[observe.{family}]
{off}kind = "{kind}"  # {what}; others: docs/kortex.example.toml
{off}url = {_quoted(url or usual)}
"""


def _confirm(confirming: Confirming, known: Sequence[str]) -> str:
    names = ", ".join(name for each, name in confirming.groups.items() if name != each)
    named = (
        f"  # {names}"
        if names
        else "  # ids, as S0123ABCD: People → User groups → … → Copy group ID"
    )
    return f"""\
[roles.responder]
usergroups = {_quoted(list(confirming.groups))}{named}
users = {_quoted(list(confirming.people))}  # ids, as U0123ABCD: profile → ⋮ → Copy member ID

[admins]
roles = ["responder"]

# The first match wins; without a match, people can ask and not confirm.
[[channels]]
match = "incident-*"
products = {_quoted(list(known))}  # the products of this channel, as `kortex check` lists them; none: all
confirm = ["responder"]

# Kortex can propose only declared [[actions]]. To try a card, uncomment this one; it sends nothing:
#
# [[actions]]
# name = "rollback-deploy"  # the only action that triage proposes
# description = "Roll a product back to the previous version"
# products = ["*"]
# params_schema = {{ type = "object", properties = {{ version = {{ type = "string" }} }} }}
# reversible = true
# endpoint = {{ kind = "rehearsal" }}
"""
