"""`kortex incident record`: an incident of the team's own, out of its backends, as a case for `eval`."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

import click
from pydantic import JsonValue

from adapters.recorded.packs.archive import (
    CLUSTER_FILE,
    DEPLOYS_FILE,
    FEEDBACK_FILE,
    GRAPH_FILE,
    LOGS_FILE,
    METRICS_FILE,
    TRACES_FILE,
)
from adapters.recorded.packs.capture import (
    CapturedRows,
    Row,
    take_cluster,
    take_deploys,
    take_logs,
    take_metrics,
    take_traces,
)
from adapters.recorded.packs.writing import NotWritten, WrittenCase, write_case
from bot.app.backend_selection import Observed
from bot.app.build import build_base
from bot.cli.exit_codes import FAILED, OK
from bot.cli.invocation import complain, configured, operator
from bot.cli.options import WHEN, instant
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.tenancy import HOME
from bot.ports.feedback import Feedback
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.settings.section import duration
from tools.capabilities import Interval
from tools.redactor import RedactionFailed, Redactor

T = TypeVar("T")

LONGEST: Final = timedelta(hours=24)  # of an incident
LONGEST_BEFORE: Final = timedelta(days=7)
STEP_S: Final = 60.0
TRACES_BEFORE: Final = timedelta(hours=1)
CLUSTER_IS_NOW: Final = timedelta(minutes=30)  # after it, what the cluster says is of another time


@dataclass(slots=True)
class _Gathered:
    rows: dict[str, list[Row]] = field(default_factory=dict)
    documents: dict[str, JsonValue] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, file: str, taken: CapturedRows) -> None:
        self.notes += taken.notes
        if taken.rows:
            self.rows[file] = taken.rows


def _before(text: str) -> timedelta:
    try:
        found = duration(text)
    except ValueError as error:
        raise click.BadParameter(f"{text}: {error}") from error
    if not isinstance(found, timedelta) or not timedelta(0) <= found <= LONGEST_BEFORE:
        raise click.BadParameter(f"{text}: up to 168h")
    return found


@click.command()
@click.option(
    "--since", required=True, type=instant, metavar="WHEN", help=f"When it began: {WHEN}."
)
@click.option(
    "--until",
    type=instant,
    metavar="WHEN",
    help="The time of the question (default: now). Later data is left out.",
)
@click.option(
    "--products",
    default="",
    metavar="A,B,C",
    help="The products of the incident (default: all products of the configured channels).",
)
@click.option(
    "--before",
    type=_before,
    default="24h",
    metavar="TIME",
    show_default=True,
    help="Length of the baseline before it.",
)
@click.option("--asked", default="", metavar="QUESTION", help="The question to record.")
@click.option(
    "--set",
    "set_name",
    default="own",
    metavar="NAME",
    show_default=True,
    help="The set of the case in `kortex eval`.",
)
@click.option(
    "--output",
    default="",
    metavar="FOLDER",
    help="The folder to write (default: incidents/DATE-TIME-PRODUCT). It must not exist.",
)
@click.option(
    "--channel",
    default="incident-console",
    metavar="NAME",
    show_default=True,
    help="Read the backends of this channel.",
)
@configured
async def record(
    settings: Settings,
    *,
    since: datetime,
    until: datetime | None,
    products: str,
    before: timedelta,
    asked: str,
    set_name: str,
    output: str,
    channel: str,
) -> int:
    """Write what the backends know of an incident, redacted, as a case for `kortex eval`.

    \b
    Example:
      kortex incident record --since "2026-11-21T14:00" --until "2026-11-21T15:00" --products checkout
    """
    async with AsyncExitStack() as stack:
        base = await build_base(settings, stack)
        interval = _interval(since, until, base.clock.now())
        named = _products(products, settings)
        folder = _folder(output, interval, named)
        is_now = base.clock.now() - interval.end <= CLUSTER_IS_NOW
        observed = base.observed_in(base.live_config.channels_of(HOME), channel)
        gathered = await _gather(observed, named, interval, before, is_now)
        if not gathered.rows and not gathered.documents:
            _tell_notes(gathered.notes)
            complain("no data was found, so nothing was written")
            return FAILED
        if judged := await _judged(base.stores.feedback, interval):
            gathered.documents[FEEDBACK_FILE] = judged
        case = WrittenCase(
            id=folder.name,
            set=set_name,
            asked=asked or f"what is wrong with {named[0]}?",
            now=interval.end,
            products=named,
            rows=gathered.rows,
            documents=gathered.documents,
            notes=gathered.notes,
        )
        await base.stores.audit.append(_on_record(case, interval))
        left_out = await _write(folder, case, base.redactor)
    _tell_notes([*gathered.notes, *left_out])
    _tell_written(folder, gathered)
    return OK


async def _write(folder: Path, case: WrittenCase, redactor: Redactor) -> Sequence[str]:
    try:
        return await asyncio.to_thread(write_case, folder, case, redactor.redact_value)
    except NotWritten as error:
        raise ConfigurationError(str(error)) from error
    except RedactionFailed as error:
        raise ConfigurationError(
            f"{folder}: nothing was written, because it could not be redacted ({error})"
        ) from error


async def _judged(feedback: Feedback, incident: Interval) -> JsonValue:
    """Votes on the answers of that time, without names; None without a vote.

    Direct messages to the bot stay out.
    """
    found = await feedback.between(incident.start, incident.end)
    told: list[JsonValue] = [
        {
            "asked": each.asked,
            "provider": each.provider,
            "vote": each.vote.value,
            "reason": each.reason,
            "at": each.at.isoformat(),
        }
        for each in found
        if not each.place.channel.startswith("D")
    ]
    return {"feedback": told} if told else None


async def _gather(
    observed: Observed,
    products: Sequence[str],
    incident: Interval,
    before: timedelta,
    cluster_is_now: bool,
) -> _Gathered:
    gathered = _Gathered()
    whole = Interval(incident.start - before, incident.end)
    earlier = Interval(incident.start - TRACES_BEFORE, incident.start)
    if observed.metrics:
        taken = take_metrics(observed.metrics, products, whole, STEP_S)
        gathered.add(METRICS_FILE, await _told("metrics", taken))
    if observed.logs:
        gathered.add(LOGS_FILE, await _told("logs", take_logs(observed.logs, products, whole)))
    if observed.traces:
        work = take_traces(observed.traces, products, (incident, earlier))
        spans, calls = await _told("traces", work)
        gathered.add(TRACES_FILE, spans)
        if calls:
            gathered.documents[GRAPH_FILE] = {"edges": [list(call) for call in calls]}
    sources = [one for one in (observed.deploys, observed.rollouts) if one]
    deploys = await _told("deploys", take_deploys(sources, products, whole))
    gathered.notes += deploys.notes
    if deploys.rows:
        gathered.documents[DEPLOYS_FILE] = {"deploys": list[JsonValue](deploys.rows)}
    if observed.kubernetes and cluster_is_now:
        print("reading Kubernetes", file=sys.stderr, flush=True)
        state, notes = await take_cluster(observed.kubernetes, products)
        gathered.documents[CLUSTER_FILE] = state
        gathered.notes += notes
    elif observed.kubernetes:
        gathered.notes.append(
            f"Kubernetes: shows only the current state, not that of {incident.end:%Y-%m-%d %H:%M} UTC; left out"
        )
    missing = {
        "metrics": observed.metrics, "logs": observed.logs, "traces": observed.traces,
        "Kubernetes": observed.kubernetes,
    }  # fmt: skip
    gathered.notes += [f"{name}: not configured" for name, one in missing.items() if one is None]
    return gathered


async def _told(what: str, work: Awaitable[T]) -> T:
    print(f"reading {what}", file=sys.stderr, flush=True)
    return await work


def _interval(since: datetime, until: datetime | None, now: datetime) -> Interval:
    end = min(until or now, now)
    if not timedelta(0) < end - since <= LONGEST:
        raise ConfigurationError(
            f"--since {since:%Y-%m-%d %H:%M} --until {end:%Y-%m-%d %H:%M} UTC: an incident lasts "
            "up to 24 h and begins before it ends; --before sets its baseline"
        )
    return Interval(since, end)


def _products(products: str, settings: Settings) -> Sequence[str]:
    typed = [one.strip() for one in products.split(",") if one.strip()]
    named = [one for channel in settings.channels for one in channel.products if one != "*"]
    found = tuple(dict.fromkeys(typed or named))
    if not found:
        raise ConfigurationError("--products: name the products of the incident, a,b,c")
    return found


def _folder(output: str, incident: Interval, products: Sequence[str]) -> Path:
    name = re.sub(r"[^\w.-]+", "-", products[0])
    folder = Path(output or f"incidents/{incident.end:%Y-%m-%d-%H%M}-{name}")
    if folder.exists():
        raise ConfigurationError(f"{folder}: already exists; name another with --output")
    return folder


def _on_record(case: WrittenCase, incident: Interval) -> AuditEvent:
    return AuditEvent(
        AuditKind.ADMIN_COMMAND,
        operator(),
        {
            "command": "incident record",
            "case": case.id,
            "since": incident.start.isoformat(),
            "until": incident.end.isoformat(),
            "products": list(case.products),
        },
    )


def _tell_notes(notes: Sequence[str]) -> None:
    for note in dict.fromkeys(notes):
        print(f"missing: {note}", file=sys.stderr)


def _tell_written(folder: Path, gathered: _Gathered) -> None:
    print(f"written to {folder}, redacted:")
    for file, rows in gathered.rows.items():
        print(f"  {file}: {len(rows)} lines")
    for file in gathered.documents:
        print(f"  {file}")
    print(f"Fill in {folder / 'truth.json'}, then: kortex eval {folder}")
