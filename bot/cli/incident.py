"""`kortex incident`: write a session's report, and post it in its thread."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click
from pydantic import JsonValue

from bot.app import rules
from bot.app.stores import Stores, open_redactor, open_stores
from bot.audit.checkpoint import Checkpoint, sign
from bot.cli.exit_codes import FAILED, OK
from bot.cli.headless import TEAM as HEADLESS
from bot.cli.incident_record import record
from bot.cli.invocation import complain, operator
from bot.cli.sessions import FORMS, configured_or_demo, find_session
from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.dossier import Dossier
from bot.domain.ids import API, MessageTs
from bot.domain.thread import ThreadRead
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.reports.incident import ReportFacts, people_in
from bot.reports.incident import report as incident_report
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.slack.api.calls import RedactedCalls, SlackCalls
from bot.slack.api.users import PersonNames
from bot.slack.api.web_api import create_api, slack_session
from bot.slack.delivery.outbox import Outbox
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.ingress.startup import site_of
from bot.slack.text.links import LinkPolicy
from bot.slack.views.surface import SlackSurface
from bot.slack.views.threads import SlackThreads
from bot.store.audit_reading import verify
from bot.store.dossiers import Dossiers
from tools.redactor import Redactor

LOOK_UP_TIMEOUT_S = 30.0
_WHAT_TO_DO = {
    "not_in_channel": "Invite Kortex there (/invite @kortex), and run the command again",
    "channel_not_found": "Kortex cannot see the channel: invite it there, or post the file yourself",
    "is_archived": "Unarchive the channel, or post the file elsewhere",
    "invalid_auth": "Slack refuses slack.bot_token: see `kortex check`",
    "token_revoked": "Slack refuses slack.bot_token: see `kortex check`",
    "account_inactive": "Slack refuses slack.bot_token: see `kortex check`",
}
POST_TIMEOUT_S = 120.0  # a long report is several messages, and Slack wants a second between them
MAX_LINKS = 200
MOST_MESSAGES = 1_000  # of the thread: five pages of Slack's
MOST_OTHERS = 5
STDOUT = "-"


@click.group()
def incident() -> None:
    """Write an incident's report, or record it as a case for `kortex eval`."""


incident.add_command(record)


@incident.command()
@click.argument("session", required=False)
@click.option(
    "--output",
    default="",
    metavar="FILE",
    help="The file to write (default: NAME-DATE.md here). - is standard output.",
)
@click.option("--post", is_flag=True, help="Also post it in the session's thread.")
@configured_or_demo
async def report(settings: Settings, session: str | None, output: str, post: bool) -> int:
    """Write a session's report: timeline, decisions, evidence, cost and audit range.

    It begins with one page: summary, impact, cause, timeline, actions, open questions. SESSION is an
    id, a name, or a link of a thread. Of several threads of a name the newest incident of the last
    day is taken: one with a proposal first. With --demo the default is the newest incident.

    \b
    Examples:
      kortex incident report incident-checkout
      kortex incident report --demo --output -
    """
    async with AsyncExitStack() as stack:
        stores = await open_stores(settings, stack)
        dossier = await _dossier(stores, session, in_chat=post)
        beside = await _other_sessions(stores, dossier, session)
        redactor = open_redactor(settings)
        if post and (why := _why_not_posted(settings, dossier)):
            raise ConfigurationError(f"--post: {why}")
        slack = await stack.enter_async_context(_slack(settings, redactor, dossier))
        facts = replace(await _facts(stores, settings, dossier), beside=beside)
        if slack is not None:
            facts = await _looked_up(facts, dossier, slack)
        text = redactor.redact(incident_report(dossier, facts))
        path = _kept(output, dossier, text)
        if post and slack is not None and not await _posted(stores, slack, dossier, text):
            return FAILED
    if beside:
        complain(beside)
    if path:
        print(f"written to {path}" + (", and posted in the thread" if post else ""))
    return OK


def _why_not_posted(settings: Settings, dossier: Dossier) -> str:
    team = dossier.session.place.team
    if team == HEADLESS:
        return (
            "this session was asked with `kortex ask` or `kortex eval`, so it has no thread. "
            "Leave --post out, or name another session"
        )
    if team == API:
        return (
            "this session was asked over the HTTP API (`kortex chat` or the page), so it has no "
            "Slack thread. Leave --post out, or name another session"
        )
    if not settings.slack.bot_token.get_secret_value():
        return "slack.bot_token is empty, so Slack cannot be reached. Set it, or leave --post out"
    return ""


async def _dossier(stores: Stores, wanted: str | None, *, in_chat: bool) -> Dossier:
    dossiers = Dossiers(stores.database)
    found = await dossiers.incident(wanted, besides=(API, HEADLESS)) if in_chat else None
    found = found or await dossiers.incident(wanted)
    if found is None and wanted is not None:
        found = await find_session(stores.database, wanted)
    dossier = await dossiers.read(found) if found else None
    if dossier is None:
        if wanted is None:
            raise ConfigurationError("there is no session yet: no question was asked")
        raise ConfigurationError(f"there is no session {wanted!r}; write {FORMS}")
    return dossier


async def _other_sessions(stores: Stores, dossier: Dossier, wanted: str | None) -> str:
    session = dossier.session
    if wanted not in (None, session.name):
        return ""
    others = await Dossiers(stores.database).others(session.id, wanted, MOST_OTHERS)
    if not others.total:
        return ""
    of_name = f" named {wanted}" if wanted else ""
    told = f"this is the newest incident of {others.total + 1} threads{of_name}"
    if not others.proposed:
        have = "thread has" if others.total == 1 else "threads have"
        return f"{told}; the other {have} no proposals"
    named = ", ".join(others.newest_proposed)
    more = ", …" if others.proposed > len(others.newest_proposed) else ""
    have = "other thread has" if others.proposed == 1 else "other threads have"
    return f"{told}; {others.proposed} {have} proposals: {named}{more}"


async def _facts(stores: Stores, settings: Settings, dossier: Dossier) -> ReportFacts:
    keys = rules.audit_keys(settings)
    verdict = await verify(stores.audit_reader, keys)
    return ReportFacts(datetime.now(UTC), verdict, await _checkpoint(stores, settings, dossier))


async def _checkpoint(stores: Stores, settings: Settings, dossier: Dossier) -> Checkpoint | None:
    """The first checkpoint that covers the session's last row; made now where it is missing."""
    if not dossier.audit_log:
        return None
    last = dossier.audit_log[-1].seq
    covering = [each for each in await stores.audit_reader.checkpoints() if each.size >= last]
    newest = await stores.audit_reader.newest()
    if covering or newest is None or not newest.mac:
        return covering[0] if covering else None
    made = sign(rules.audit_keys(settings), newest.seq, newest.mac, await stores.database.now())
    await stores.audit_reader.keep_checkpoint(made)
    return made


class _Refusals(SlackCalls):
    """`SlackCalls` with the newest refusal, for a call that is retried until its time is up."""

    def __init__(self, calls: SlackCalls) -> None:
        self._calls = calls
        self.newest = ""

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        try:
            return await self._calls.call(method, **arguments)
        except (SurfaceFailed, SurfaceGone) as error:
            self.newest = str(error)
            raise


@dataclass(frozen=True, slots=True)
class _Slack:
    api: _Refusals
    surface: SlackSurface
    threads: SlackThreads


@asynccontextmanager
async def _slack(
    settings: Settings, redactor: Redactor, dossier: Dossier
) -> AsyncIterator[_Slack | None]:
    if _why_not_posted(settings, dossier):
        yield None
        return
    token = settings.slack.bot_token.get_secret_value()
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(slack_session())
        calls = create_api(token, settings.slack.api_base_url, session)
        api = _Refusals(RedactedCalls(calls, redactor.redact))
        scheduler = EditScheduler()
        await stack.enter_async_context(scheduler.running())
        bot_user, site = await _own_account(api)
        surface = SlackSurface(
            Outbox(api, scheduler, bot_user),
            redact=redactor.redact,
            links=LinkPolicy(frozenset(), site),
        )
        people = PersonNames(api, lambda: 0.0)
        paced = (scheduler.read_permit, scheduler.rate_limited)
        yield _Slack(api, surface, SlackThreads(api, people, bot_user, site, *paced))


async def _own_account(api: SlackCalls) -> tuple[str, str]:
    try:
        async with asyncio.timeout(LOOK_UP_TIMEOUT_S):
            answer: Mapping[str, object] = await api.call("auth.test")
    except (SurfaceFailed, SurfaceGone, TimeoutError):
        return "", ""
    return str(answer.get("user_id") or ""), site_of(str(answer.get("url") or ""))


async def _looked_up(facts: ReportFacts, dossier: Dossier, slack: _Slack) -> ReportFacts:
    names: dict[str, str] = {}
    links: dict[str, str] = {}
    try:
        async with asyncio.timeout(LOOK_UP_TIMEOUT_S):
            await _add_names(names, people_in(dossier), slack.api)
            await _add_links(links, dossier, slack.api)
    except (SurfaceFailed, SurfaceGone, TimeoutError) as error:
        complain(f"Slack returned no more names and links: {error}")
    return replace(facts, names=names, links=links, thread=await _thread(dossier, slack))


async def _thread(dossier: Dossier, slack: _Slack) -> ThreadRead:
    try:
        async with asyncio.timeout(LOOK_UP_TIMEOUT_S):
            return await slack.threads.read(dossier.session.place, MessageTs(""), MOST_MESSAGES)
    except TimeoutError:
        return ThreadRead((), "Slack did not return the messages in time")


async def _add_names(names: dict[str, str], people: Iterable[str], api: SlackCalls) -> None:
    known = PersonNames(api, lambda: 0.0)
    for user in sorted(people):
        if re.fullmatch(r"[UW][A-Z0-9]{2,20}", user):
            names[user] = await known.name(user)


async def _add_links(links: dict[str, str], dossier: Dossier, api: SlackCalls) -> None:
    place = dossier.session.place
    wanted = [place.thread_ts, *(turn.answer_ts for turn in dossier.turns)]
    wanted += [proposal.card_ts for proposal in dossier.proposals]
    for ts in [each for each in dict.fromkeys(wanted) if each][:MAX_LINKS]:
        answer: Mapping[str, object] = await api.call(
            "chat.getPermalink", channel=place.channel, message_ts=ts
        )
        links[ts] = str(answer.get("permalink") or "")


def _kept(output: str, dossier: Dossier, text: str) -> str:
    if output == STDOUT:
        sys.stdout.write(text)
        return ""
    name = re.sub(r"[^\w.-]+", "-", dossier.session.name) or "session"
    path = Path(output or f"{name}-{dossier.session.created_at:%Y-%m-%d}.md")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be written ({error.strerror})") from error
    return str(path)


async def _posted(stores: Stores, slack: _Slack, dossier: Dossier, text: str) -> bool:
    """In the thread, once per state of the audit log; on record before it is sent."""
    last = dossier.audit_log[-1].seq if dossier.audit_log else 0
    key = f"report:{dossier.session.id}:{last}"
    await stores.audit.append(
        AuditEvent(
            AuditKind.ADMIN_COMMAND,
            operator(),
            {"command": "incident report", "session": dossier.session.id, "through_row": last},
            key=key,
        )
    )
    slack.api.newest = ""
    try:
        async with asyncio.timeout(POST_TIMEOUT_S):
            await slack.surface.say(dossier.session.place, text, key)
    except (SurfaceFailed, SurfaceGone, TimeoutError) as error:
        why = str(error) or f"Slack did not accept it in time. {slack.api.newest}".rstrip()
        do = _WHAT_TO_DO.get(why.rpartition(": ")[2], "Run the command again with --post")
        complain(f"the report was written but not posted: {why}. {do}")
        return False
    return True
