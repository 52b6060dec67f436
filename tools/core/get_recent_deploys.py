"""core__get_recent_deploys: recent deploys, newest first."""

from collections.abc import Sequence
from datetime import timedelta

from tools.capabilities import CallContext, Capabilities, Deploy, Interval
from tools.contract import COMPUTED, ToolInput, ToolOutput
from tools.core.arguments import ProductOrAny, TimeRangeText
from tools.core.built_in import bound, counted, entry_of, read_only
from tools.errors import ToolError
from tools.output import clean_text
from tools.products import ProductScope, within
from tools.timerange import parse_time_range, readable_range

MAX_DEPLOYS = 100
LONG = timedelta(days=90)
NO_SOURCE = "no deploy of any product was received in 90 days: connect a deploy source"
UNREAD = "not all deploys could be read"
SAME_DEPLOY = timedelta(minutes=30)  # a pipeline reports a rollout some time after it began


class DeploysInput(ToolInput):
    product: ProductOrAny
    time_range: TimeRangeText


class DeployEntry(ToolOutput):
    ts: str
    product: str
    version: str
    previous_version: str | None = None
    actor: str | None = None
    host: str | None = None
    duration_s: float | None = None
    status: str
    commit: str | None = None
    rolled_back: bool


class DeploysOutput(ToolOutput):
    range: str
    deploys: list[DeployEntry]
    truncated: bool
    total_matches: int
    notes: list[str] | None = None


class GetRecentDeploys:
    contract = read_only(
        "get_recent_deploys",
        "Deploys of a product ('*' for all) in a time range, newest first. Use early: look"
        " for one shortly before the symptoms began, also in products it depends on.",
        (DeploysInput, DeploysOutput),
        "deploys",
        ProductScope(("product",), narrows=True),
        "investigate",
        "recommend",
        "platform",
        timeouts=COMPUTED,
    )

    async def execute(
        self, arguments: DeploysInput, call: CallContext, caps: Capabilities
    ) -> DeploysOutput:
        when = parse_time_range(arguments.time_range, call.now)
        stored = bound(caps.deploys, "deploys")
        events = await stored.between(arguments.product, when.interval)
        rollouts, notes = await _rollouts(arguments.product, when.interval, caps)
        found = [each for each in merged(events, rollouts) if within(call, each.product)]
        if unread := stored.unread_sources():
            sources = "1 source does" if unread == 1 else f"{unread} sources do"
            notes.append(f"{UNREAD}, because {sources} not answer")
        if not (found or notes) and await _has_no_source(caps, call):
            notes.append(NO_SOURCE)
        notes += when.notes
        return DeploysOutput(
            range=when.text,
            deploys=[_entry(deploy) for deploy in found[:MAX_DEPLOYS]],
            truncated=len(found) > MAX_DEPLOYS,
            total_matches=len(found),
            notes=notes or None,
        )

    def summarise(self, output: DeploysOutput, arguments: DeploysInput) -> str:
        """`3 deploys, last 6h`, or that no deploy source is connected."""
        if NO_SOURCE in (output.notes or ()):
            return "no deploy source is connected"
        is_part = any(note.startswith(UNREAD) for note in output.notes or ())
        partly = ", not all read" if is_part else ""
        deploys = counted(output.total_matches, "deploy")
        return f"{deploys}, {readable_range(arguments.time_range)}{partly}"


async def _has_no_source(caps: Capabilities, call: CallContext) -> bool:
    if caps.rollouts is not None:
        return False
    long = Interval(call.now - LONG, call.now + timedelta(seconds=1))
    return not await bound(caps.deploys, "deploys").between("*", long)


async def _rollouts(
    product: str, interval: Interval, caps: Capabilities
) -> tuple[Sequence[Deploy], list[str]]:
    if caps.rollouts is None:
        return (), []
    try:
        return await caps.rollouts.between(product, interval), []
    except ToolError as error:
        return (), [f"{UNREAD}, because of Kubernetes: {clean_text(error.message)[:200]}"]


def merged(events: Sequence[Deploy], rollouts: Sequence[Deploy]) -> list[Deploy]:
    """Newest first, with each rollout only once: an event of the same rollout knows more."""
    told = [
        rollout
        for rollout in rollouts
        if not any(
            event.product == rollout.product
            and abs(event.at - rollout.at) <= SAME_DEPLOY
            and rollout.version in (event.version, event.commit, event.commit[:12])
            for event in events
        )
    ]
    return sorted([*events, *told], key=lambda deploy: deploy.at, reverse=True)


def _entry(deploy: Deploy) -> DeployEntry:
    return entry_of(DeployEntry, deploy, ts=deploy.at, rolled_back=deploy.status == "rolled_back")
