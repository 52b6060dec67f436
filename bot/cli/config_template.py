"""The `kortex.toml` that `kortex init` writes, from its answers. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template
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


_NO_MODEL: Final = "no model; uncomment the lines below to use one"


class _Template(Template):
    delimiter = "@"


def configuration(answers: Answers) -> str:
    """The text of the file: valid TOML without a secret."""
    text = resources.files(__package__).joinpath("init.toml").read_text(encoding="utf-8")
    has_model = answers.provider in MODELS
    model_of = answers.provider if has_model else next(iter(MODELS))
    api_key, model = MODELS[model_of]
    address = f"api_base_url = {_quoted(answers.api_base_url)}\n"
    groups = answers.confirming.groups
    names = ", ".join(name for each, name in groups.items() if name != each)
    return _Template(text).substitute(
        mode=_quoted(answers.mode),
        bot_token=answers.bot_token,
        secret="app_token" if answers.mode == "socket" else "signing_secret",
        other_secret=answers.other_secret,
        api_base_url="" if answers.api_base_url == SLACK_API else address,
        audit_key=AUDIT_KEY,
        provider=_quoted(answers.provider),
        why="when no model answers, triage does" if has_model else _NO_MODEL,
        no_model="" if has_model else "# ",
        model_of=model_of,
        api_key=api_key,
        model=_quoted(model),
        no_logs="" if answers.logs else "# ",
        logs=_quoted(answers.logs or "http://loki:3100"),
        no_metrics="" if answers.metrics else "# ",
        metrics=_quoted(answers.metrics or "http://prometheus:9090"),
        groups=_quoted(list(groups)),
        group_names=names or "ids, as S0123ABCD: People → User groups → … → Copy group ID",
        people=_quoted(list(answers.confirming.people)),
        products=_quoted(list(answers.products)),
    )


def _quoted(text: str | list[str]) -> str:
    return json.dumps(text, ensure_ascii=False)
