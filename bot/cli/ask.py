"""`kortex ask`: one question in this terminal, without a chat platform."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

import click
from pydantic import JsonValue

from adapters.llm.triage.provider import NAME as TRIAGE
from bot.app.backend_selection import RecordedWorld
from bot.app.build import Base, build_base
from bot.app.conversation import build_conversation
from bot.app.platforms import Directory
from bot.chat.evidence_need import REPLACED
from bot.cli.display import print_answer, print_json
from bot.cli.exit_codes import FAILED, OK
from bot.cli.headless import (
    HeadlessSurface,
    NamedByUser,
    NeverStopped,
    PlainJournal,
    answer_json,
    headless_ask,
)
from bot.cli.invocation import complain, configured
from bot.cli.options import json_option, words, zone_option
from bot.domain.channel import rule_for
from bot.domain.findings import TOOL as FINDINGS
from bot.domain.findings import details_in
from bot.domain.ids import Person, UserId
from bot.domain.session import Ask
from bot.ports.platform import NamedByPlace
from bot.settings.model import Settings
from tools.redactor import Redacted

_NOBODY_DECIDES = (
    "It cannot be confirmed here, so no card was posted. Ask in a channel or with `kortex chat`."
)


@click.command()
@click.argument("question", type=words)
@click.option(
    "--session",
    default="incident-console",
    metavar="NAME",
    show_default=True,
    help="The channel name that rules and toolsets match.",
)
@zone_option
@json_option
@configured
async def ask(settings: Settings, question: str, session: str, zone: str, as_json: bool) -> int:
    """Ask one question here, without a chat platform.

    Kortex reads the configured backends and prints the answer. It raises no card, because nobody
    can confirm one here. Exit 1: no conclusion, or the default provider did not answer.

    \b
    Examples:
      kortex ask "why is checkout slow?"
      kortex ask "what changed since 14:00?" --session incident-payments --json
    """
    return await ask_with(settings, question, session, zone, as_json=as_json)


async def ask_with(
    settings: Settings, question: str, channel: str, zone: str = "UTC", *, as_json: bool
) -> int:
    """Ask and print. The exit code is 1 without a conclusion, or without the default provider."""
    tell: Callable[[str], None] = (lambda _: None) if as_json else print
    answer = await answer_here(settings, question, channel, tell, zone=zone)
    if as_json:
        print_json(answer)
    else:
        _print(answer)
    if settings.llm.default_provider != TRIAGE and answer["provider"] in ("", TRIAGE):
        complain(_why_no_model(answer, settings.llm.default_provider))
        return FAILED
    return FAILED if answer["end"] in ("failed", "budget", "depth_exceeded") else OK


def _why_no_model(answer: Mapping[str, JsonValue], default: str) -> str:
    notices = answer["notices"]
    if isinstance(notices, list) and REPLACED in notices:
        return f"{default} answered without evidence, so its answer is hidden; the answer above is rule-based"
    return (
        f"no model answered ({default} is the default_provider); "
        "`kortex check` shows the reason for each"
    )


def _print(answer: Mapping[str, JsonValue]) -> None:
    print()
    print_answer(str(answer["answer"]))
    print()
    _print_details(answer["evidence"], str(answer["answer"]))
    notices = answer["notices"]
    for notice in notices if isinstance(notices, list) else []:
        print(f"notice: {notice}")
    if isinstance(proposal := answer["proposal"], dict):
        print(f"would propose: {_proposed(proposal)}")
        print(_NOBODY_DECIDES)


def _print_details(evidence: JsonValue, shown: str) -> None:
    rows = [row for row in evidence if isinstance(row, dict)] if isinstance(evidence, list) else []
    results = [row["result"] for row in rows if row.get("tool") == FINDINGS]
    lines = [f"- {each}" for each in details_in(results[-1] if results else None)]
    if more := [line for line in lines if line not in shown]:
        print_answer("\n".join(["Also found:", *more]))
        print()


def _proposed(proposal: Mapping[str, JsonValue]) -> str:
    """`rollback-deploy for checkout (version: v2.3.7). Blast radius: one service. May confirm: responder`."""
    params = proposal["params"]
    named = params.items() if isinstance(params, dict) else [("params", params)]
    shown = ", ".join(f"{name}: {value}" for name, value in named)
    told = [
        f"{proposal['action']} for {proposal['product']}" + (f" ({shown})" if shown else ""),
        f"Blast radius: {proposal['blast_radius']}" if proposal["blast_radius"] else "",
        f"May confirm: {_names(proposal['may_confirm']) or 'nobody'}",
    ]
    if must := _names(proposal["must_also_hold"]):
        told.append(f"Must also hold: {must}")
    return ". ".join(filter(None, told))


def _names(value: JsonValue) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else ""


async def answer_here(
    settings: Settings,
    question: str,
    channel: str,
    tell: Callable[[str], None],
    world: RecordedWorld | None = None,
    zone: str = "UTC",
) -> dict[str, JsonValue]:
    """Ask as a person in that channel would, and return the JSON of the answer.

    Writes to the configured database as any turn does. `world` replaces the clock and the configured
    backends; `zone` is the person's time zone, by name. Raises ConfigurationError, StorageUnavailable.
    """
    surface = HeadlessSurface(tell)
    async with AsyncExitStack() as stack:
        base = await build_base(settings, stack, world=world)
        users: Mapping[str, Sequence[str]] = {
            name: role.users for name, role in settings.roles.items()
        }

        async def there(person: Person) -> str:  # noqa: ARG001 - as the port says
            return zone

        directory = Directory(_same, NamedByPlace(), NamedByUser(users), there)
        conversation = build_conversation(base, surface, NeverStopped(), directory)
        asked = _asked(base, question, channel)
        final = await conversation.turns.answer(asked, PlainJournal())
    assert final is not None  # noqa: S101 - a headless place is never gone
    rule = rule_for(base.live_config.channels, channel)
    return answer_json(final, surface.proposals, rule.products)


def _asked(base: Base, question: str, channel: str) -> Ask:
    wordless = headless_ask(Redacted(""), channel, f"{time.time():.6f}")
    with base.placeholders.within(wordless.place.key):
        return replace(wordless, text=base.redactor.redact(question))


async def _same(user: UserId) -> str:
    return user
