"""`kortex budget` and `kortex usage export`: what model calls cost."""

import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import click
from pydantic import JsonValue

from bot.app import rules
from bot.app.stores import Stores, open_stores
from bot.chat.budget_report import BudgetReport, budget_report
from bot.cli.display import print_json, print_json_line
from bot.cli.exit_codes import OK
from bot.cli.invocation import configured
from bot.cli.options import WHEN, instant, jsonl_option
from bot.domain.ids import MessageTs, Place, UserId
from bot.ports.ledger import DatedEntry
from bot.settings.model import Settings
from bot.web.api.naming import Naming
from bot.web.api.spending import budget_model, labels

_NEVER = datetime(9999, 1, 1, tzinfo=UTC)
_EVER = datetime(1970, 1, 1, tzinfo=UTC)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Whole micro-dollars, as JSON.")
@configured
async def budget(settings: Settings, as_json: bool) -> int:
    """Show what was spent today, by person, channel and model."""
    async with AsyncExitStack() as stack:
        stores = await open_stores(settings, stack)
        report = await budget_report(stores.ledger, rules.budget_limits(settings))
        if as_json:
            print_json(await budget_model(report, _naming(stores)))
        else:
            _print_report(report, await labels(report, _naming(stores)))
    return OK


def _naming(stores: Stores) -> Naming:
    """What the database knows: channels, and callers over HTTP. A platform's people keep their ids."""

    async def name_of(user: UserId) -> str:
        return await stores.callers.name(user) if user.startswith("@") else ""

    def no_link(_: Place, __: MessageTs) -> str:
        return ""

    return Naming(stores.names.last_read, name_of, no_link, time.monotonic)


@click.group()
def usage() -> None:
    """Export what every model call used and cost."""


@usage.command()
@jsonl_option
@click.option("--since", type=instant, metavar="WHEN", help=f"From this time: {WHEN}.")
@click.option("--until", type=instant, metavar="WHEN", help=f"Before this time: {WHEN}.")
@configured
async def export(settings: Settings, since: datetime | None, until: datetime | None) -> int:
    """Print every round of a model, oldest first, one JSON object a line."""
    async with AsyncExitStack() as stack:
        stores = await open_stores(settings, stack)
        async for dated in stores.ledger.entries(since or _EVER, until or _NEVER):
            print_json_line(entry_json(dated))
    return OK


def entry_json(dated: DatedEntry) -> dict[str, JsonValue]:
    """One model call. `cost_usd_micros` is null where the price is not known."""
    entry = dated.entry
    usage = entry.usage
    return {
        "timestamp": dated.at.isoformat(),
        "operation": entry.purpose,
        "provider": entry.provider,
        "model": entry.model,
        "session": entry.session_id,
        "turn": entry.turn_id,
        "round": entry.round,
        "user": entry.user,
        "channel": entry.channel,
        "input_tokens": usage.input,
        "input_uncached_tokens": usage.input_uncached,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "output_tokens": usage.output,
        "cost_usd_micros": entry.cost_usd_micros,
        "duration_ms": entry.duration_ms,
    }


def _print_report(report: BudgetReport, known: Mapping[str, Mapping[str, str]]) -> None:
    today, limit = report.today, report.limits.daily_usd_micros
    of = f" of {_dollars(limit)} ({report.used_pct} %)" if limit else ", no daily limit"
    _out(f"today (UTC)  {_dollars(today.used_usd_micros)}{of}")
    _out(f"projected    {_dollars(report.projected_usd_micros)}")
    _out(f"reserved     {_dollars(today.held_usd_micros)}")
    for group, rows in report.by.items():
        _out(f"\nby {group}")
        for row in rows:
            unpriced = f"  {row.rounds_unpriced} unpriced" if row.rounds_unpriced else ""
            figures = f"{row.rounds:>5} rounds  {row.tokens:>11,} tokens{unpriced}"
            label = known[group].get(row.name, row.name)
            is_known = row.name in label  # its id would say nothing more
            who = label if is_known else f"{label}  {row.name}"
            _out(f"  {_dollars(row.usd_micros):>12}  {figures}  {who}")


def _out(line: str) -> None:
    sys.stdout.write(line + "\n")


def _dollars(usd_micros: int) -> str:
    return f"${usd_micros / 1_000_000:,.4f}"
