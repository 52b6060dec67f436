"""`kortex check` on what goes out and comes in: orders, the audit trail's places, our own door.

Nothing is ordered and nothing is written anywhere.
"""

import asyncio
import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from adapters.errors import AdapterError
from adapters.fault import fault_of
from adapters.http.client import REACH_S, http_client, reach, reach_alone
from adapters.http.errors import mapped_errors
from bot.commands.alert_check import postable
from bot.commands.installation import Asked
from bot.commands.patience import AFTER_S, PROBE_S, in_time, within
from bot.reports.finding import Finding
from bot.service.signing_in import make_tokens
from bot.settings.access import RouteSettings
from bot.settings.actions import ActionSettings
from bot.settings.http import HttpSettings, own_address
from bot.settings.model import ControlPlaneSettings, Settings
from bot.settings.reading import ConfigurationError
from bot.slack.api.session import slack_session
from bot.slack.api.web_api import create_api
from bot.web.listener import bind_problem
from bot.wiring.audit_outlets import check_sinks
from bot.wiring.telemetry import make_collector
from bot.wiring.ways import backend_client, plane_host

OURS = b'"up"'  # in the answer of /healthz


async def check_executors(settings: Settings) -> Sequence[Finding]:
    """A connection to each host that actions order from or read; nothing is ordered."""
    hosts: dict[str, list[str]] = {}
    for action in settings.actions:
        for url in _addresses(action):
            parts = urlsplit(url)
            names = hosts.setdefault(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", [])
            names += [] if action.name in names else [action.name]
    plane = settings.control_plane
    return await asyncio.gather(
        *(_executor(plane, host, ", ".join(names)) for host, names in hosts.items())
    )


async def _executor(plane: ControlPlaneSettings, host: str, whose: str) -> Finding:
    part = f"actions at {host}"
    if urlsplit(host).hostname != plane_host(plane):
        return await in_time(part, _reached(part, host, whose))
    return await in_time(part, _reached_by(plane, part, host, "control_plane.info_url", whose))


def _addresses(action: ActionSettings) -> Iterator[str]:
    if action.endpoint.kind != "rehearsal":
        yield action.endpoint.url
    yield from (u for u in (action.status_url, action.count_url, action.fingerprint_url) if u)


async def _reached(part: str, url: str, whose: str) -> Finding:
    try:
        await reach_alone(url, urlsplit(url).hostname or "")
    except AdapterError as error:
        return Finding(part, False, f"{error.message} ({whose})", fault=fault_of(error))
    return Finding(part, True, f"is there (a connection, nothing ordered or sent): {whose}")


async def check_outlets(asked: Asked) -> Sequence[Finding]:
    """Where events and checkpoints of the audit trail go."""
    settings = asked.of.settings
    audit = settings.audit
    part, questions = "audit checkpoints", []
    if url := audit.checkpoint_url:
        way, key = audit.checkpoint_way, "audit.checkpoint_url"
        questions.append(in_time(part, _reached_by(way, part, url, key)))
    if audit.checkpoint_file:
        questions.append(in_time(part, asyncio.to_thread(_file, Path(audit.checkpoint_file))))
    sinks, channels, others = await asyncio.gather(
        check_sinks(settings, within(PROBE_S)), _channels(asked), asyncio.gather(*questions)
    )
    return [*sinks, *channels, *others]


async def _reached_by(
    route: RouteSettings, part: str, url: str, key: str, whose: str = ""
) -> Finding:
    """As it is reached when it is used: by its proxy, with its authorities."""
    by = f": {whose}" if whose else ""
    async with AsyncExitStack() as stack:
        try:
            client = await asyncio.to_thread(backend_client, url, route, key, stack)
            await reach(client, url, urlsplit(url).hostname or "")
        except (AdapterError, ConfigurationError) as error:
            return Finding(part, False, f"{error}{by}", fault=fault_of(error))
    return Finding(part, True, f"is there (a connection, nothing ordered or sent){by}")


async def check_adapters(settings: Settings) -> Sequence[Finding]:
    """A connection to each `[adapters.NAME]`: what its tool asks is not known here."""
    return await asyncio.gather(
        *(
            in_time(
                part := f"adapter {name}",
                _reached_by(own, part, own.url, f"adapters.{name}.url"),
            )
            for name, own in settings.adapters.items()
        )
    )


async def check_collector(asked: Asked) -> Sequence[Finding]:
    """The collector of traces is sent an export of nothing, which is an empty message."""
    otel = asked.of.settings.otel
    if not otel.endpoint:
        return [Finding("otel", False, "not set in [otel]", configured=False)]
    try:
        collector = await asyncio.to_thread(make_collector, otel)
        await collector.reach()
    except ConfigurationError as error:
        return [Finding("otel", False, str(error))]
    except AdapterError as error:
        return [Finding("otel", False, error.message, fault=fault_of(error))]
    return [Finding("otel", True, "takes traces (tried with none)")]


async def check_issuer(asked: Asked) -> Sequence[Finding]:
    """Its keys are fetched, as for the first token."""
    oidc = asked.of.settings.oidc
    if not oidc.issuer:
        return [Finding("oidc", False, "not set in [oidc]", configured=False)]
    try:
        usable = await make_tokens(oidc).fetch()
    except (ConfigurationError, AdapterError) as error:
        return [Finding("oidc", False, str(error), fault=fault_of(error))]
    return [Finding("oidc", usable > 0, f"the issuer answers; keys that can be used: {usable}")]


def _file(path: Path) -> Finding:
    there = path if path.exists() else path.parent
    if not os.access(there, os.W_OK) or path.is_dir():
        words = f"{path} cannot be written by this user"
        mend = "Give this user the right to write there, or name another [audit] checkpoint_file."
        return Finding("audit checkpoints", False, words, mend=mend)
    return Finding("audit checkpoints", True, f"appended to {path}")


async def _channels(asked: Asked) -> Sequence[Finding]:
    """The one, once Slack is known to answer."""
    settings = asked.of.settings
    if not settings.audit.checkpoint_channel or (await asked.slack())[1] is None:
        return []
    async with slack_session() as session:
        token = settings.slack.bot_token.get_secret_value()
        api = create_api(token, settings.slack.api_base_url, session, within(AFTER_S))
        name = await postable("audit checkpoints", settings.audit.checkpoint_channel, api)
    if isinstance(name, Finding):
        return [name]
    return [Finding("audit checkpoints", True, f"posted in #{name}")]


async def check_door(asked: Asked) -> Sequence[Finding]:
    """Whether our own port is free, or a Kortex answers there; and whose requests it takes."""
    http = asked.of.settings.http
    takes = [name for name in type(http).model_fields if _is_set(getattr(http, name))]
    page = " and serves the page" if asked.of.settings.page.enabled else ""
    opens = f", and what {', '.join(takes)} open" if takes else ""
    words = f"answers health questions and the API{page}{opens}"
    try:
        server = await asyncio.get_running_loop().create_server(
            asyncio.Protocol, http.host, http.port
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE and await _is_kortex(http):
            return [Finding("http", True, f"a Kortex answers at port {http.port}; {words}")]
        return [Finding("http", False, bind_problem(error, http.host, http.port))]
    server.close()
    free = f"port {http.port} of {http.host} is free" if http.port else "any free port"
    return [Finding("http", True, f"{free}; {words}")]


def _is_set(value: object) -> bool:
    return isinstance(value, SecretStr) and bool(value.get_secret_value())


async def _is_kortex(http: HttpSettings) -> bool:
    client = http_client(base_url=own_address(http), connect_s=REACH_S, read_s=REACH_S)
    try:
        with mapped_errors("the service"):
            response = await client.get("/healthz")
        return OURS in response.content[:200]
    except AdapterError:
        return False
    finally:
        await client.aclose()
