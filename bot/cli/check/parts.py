"""`kortex check`: the table of parts. Every part is asked for real, none is changed.

A new part is one line of `PARTS`; its probe is in `bot.cli.check`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final

from adapters.errors import AdapterError
from adapters.fault import fault_of
from bot.app import rules
from bot.cli.check import time_budget
from bot.cli.check.actions import check_actions, declared
from bot.cli.check.backends import (
    check_adapters,
    check_cluster,
    check_collector,
    check_control_plane,
    check_feeds,
    check_issuer,
    check_patterns,
    check_platform,
    check_port,
)
from bot.cli.check.installation import Installation, InstallationProbe, made
from bot.cli.check.mending import SLACK, Mending
from bot.cli.check.observe import check_observed
from bot.cli.check.roles import check_roles
from bot.cli.check.slack import check_alerts, check_tokens, check_workspaces, token_shape
from bot.cli.check.storage import check_audit, check_database, check_outlets
from bot.cli.check.tools import (
    check_plugins,
    check_providers,
    check_tools,
    check_toolsets,
    plugin_problems,
)
from bot.ports.failures import StorageUnavailable
from bot.privacy.literals import matcher
from bot.reports.finding import Finding
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from tools.errors import ToolError
from tools.output import clean_text


@dataclass(frozen=True, slots=True)
class Part:
    """One or more rows of the table. Rows may have names of their own.

    `ask` may use the network. `read` needs no network: it serves parts without `ask`, and
    `--offline`, where secrets may be absent. `mend` is the remedy of a row that has none itself;
    `mending` gives one for each network fault.
    """

    name: str
    mend: str
    ask: Callable[[InstallationProbe], Awaitable[Sequence[Finding]]] | None = None
    read: Callable[[Installation], Sequence[Finding]] | None = None
    mending: Mending | None = None


async def examine(
    settings: Settings, *, offline: bool = False, age_s: Callable[[], float] = lambda: 0.0
) -> list[Finding]:
    """Try everything. Raises nothing that an operator can mend: it becomes a finding.

    `offline` sends no packet and opens no database: it reports what can be read. `age_s` returns for
    how long the person has waited so far.
    """
    async with AsyncExitStack() as stack:
        try:
            of = await made(settings, stack)
        except ConfigurationError as error:
            return [Finding("configuration", False, str(error), mend=_CORRECT)]
        safe = _masking(settings)
        if offline:
            return [safe(each) for part in PARTS for each in _mended(part, _read(part, of))]
        time_budget.shorten_waits(age_s())
        async with asyncio.TaskGroup() as group:
            slack = group.create_task(check_tokens(settings))
            database = group.create_task(check_database(settings))
            asked = InstallationProbe(of, slack, database)
            tasks = [group.create_task(_answers(part, asked)) for part in PARTS]
        return [safe(each) for task in tasks for each in task.result()]


def _masking(settings: Settings) -> Callable[[Finding], Finding]:
    secrets = matcher(settings.secrets())

    def safe(found: Finding) -> Finding:
        words = clean_text(found.detail).encode(errors="replace")
        masked = words if secrets is None else secrets.sub(b"[secret]", words)
        return replace(found, part=clean_text(found.part), detail=masked.decode(errors="replace"))

    return safe


def _read(part: Part, of: Installation) -> Sequence[Finding]:
    return part.read(of) if part.read is not None else ()


async def _answers(part: Part, asked: InstallationProbe) -> Sequence[Finding]:
    if part.ask is None:
        return _mended(part, _read(part, asked.of))
    try:
        async with asyncio.timeout(time_budget.within(time_budget.PART_S)):
            found = await part.ask(asked)
    except TimeoutError:
        found = [time_budget.silent(part.name, time_budget.PART_S)]
    except (ConfigurationError, StorageUnavailable, AdapterError, ToolError) as error:
        found = [Finding(part.name, False, str(error), fault=fault_of(error))]
    return _mended(part, found)


def _mended(part: Part, found: Sequence[Finding]) -> list[Finding]:
    return [
        each if each.ok or each.mend else replace(each, mend=_mend(part, each)) for each in found
    ]


def _mend(part: Part, found: Finding) -> str:
    return part.mending.of(found.fault) if part.mending and found.fault else part.mend


def _variables(of: Installation) -> Sequence[Finding]:
    """A row for each misspelt variable and for the database's; one row for all other unset ones."""
    unset = of.settings.unset
    told = [each for each in unset if each.near or each.key == "database.url"]
    alone = [
        Finding("environment", False, f"{each.key}: {each.as_words()}", warning=True)
        for each in told
    ]
    others = ", ".join(f"{u.variable} ({u.key})" for u in unset if u not in told)
    empty = [Finding("environment", False, f"no value for {others}", configured=False)]
    return alone + (empty if others else [])


async def _ask_slack(asked: InstallationProbe) -> Sequence[Finding]:
    return (await asked.slack())[0]


async def _ask_audit(asked: InstallationProbe) -> Sequence[Finding]:
    found = await asked.database()  # an embedded one is brought to its schema first
    readable = not any(each.fails for each in found if each.part == "database")
    return [await check_audit(asked.of.settings, readable=readable)]


_CORRECT = "Correct that key in kortex.toml; docs/kortex.example.toml shows each with its default."
_REACH = "and that this machine reaches the address (curl it)"

PARTS: Final = (
    Part("configuration", _CORRECT, read=lambda of: of.problems),
    Part(
        "environment",
        "Load the file that sets it (set -a; . ./kortex.env; set +a), or correct its name.",
        read=_variables,
    ),
    Part(
        "slack",
        "Copy the tokens from https://api.slack.com/apps into the variables that [slack] names.",
        ask=_ask_slack,
        read=lambda of: token_shape(rules.slack_access(of.settings)),
        mending=SLACK,
    ),
    Part(
        "workspaces",
        "Install the app there again at /slack/install. For an unreadable token, put its key back into "
        "slack.token_keys.",
        ask=check_workspaces,
    ),
    Part("http", "Choose another [http] host or port, or stop what listens there.", ask=check_port),
    Part(
        "roles",
        "Correct the ids in [roles.*]; the app needs usergroups:read and users:read (app-manifest.yml). "
        "A role that cannot be read has no members.",
        ask=check_roles,
        mending=Mending("[roles.*.oncall] url", "its token"),
    ),
    Part(
        "alerts",
        "Correct [[alerts]] and the senders' secrets in [http]; see docs/alerts.md.",
        ask=check_alerts,
    ),
    Part(
        "database",
        "Check [database] url, and that this user may write there; an old schema needs `kortex migrate`.",
        ask=lambda asked: asked.database(),
        mending=Mending(
            "[database] url",
            "user and password of [database] url",
            right="let that user use that database (docs/deploying.md)",
            trust="name that in sslrootcert of the address",
        ),
    ),
    Part("audit", "Set [audit] key, or run `kortex audit verify` for details.", ask=_ask_audit),
    Part(
        "audit places",
        f"Check that key of [audit] and its token, {_REACH}.",
        ask=check_outlets,
        mending=Mending("that key of [audit]", "its token"),
    ),
    Part(
        "providers",
        "Check api_key, model and address of that [llm.providers.*]; the other providers are used until then.",
        ask=lambda asked: check_providers(asked.of.providers, asked.of.in_order),
        mending=Mending(
            "the address of that [llm.providers.*]",
            "its api_key",
            right="choose a model that it may use, or ask its owner",
        ),
    ),
    Part(
        "observe",
        "Check url and token of that [observe.*] table, "
        f"{_REACH}. If no product matches, add your label to [observe] product_labels.",
        ask=check_observed,
        mending=Mending("url of that [observe.*] table", "its token"),
    ),
    Part(
        "kubernetes",
        "Check [kubernetes]; docs/sources.md has the role that this identity needs.",
        ask=check_cluster,
        mending=Mending(
            "[kubernetes] or its kubeconfig",
            "the token or certificate of this identity",
            right="docs/sources.md has the role that it needs",
        ),
    ),
    Part(
        "control plane",
        f"Check [control_plane] info_url and token, {_REACH}.",
        ask=check_control_plane,
        mending=Mending("[control_plane] info_url", "[control_plane] token"),
    ),
    Part(
        "platform",
        f"Check [platform] url and that connection's token, {_REACH}.",
        ask=check_platform,
        mending=Mending("[platform] url", "that connection's token"),
    ),
    Part(
        "deploys",
        f"Check url, token and projects of that [deploys.*], {_REACH}.",
        ask=check_feeds,
        mending=Mending("url of that [deploys.*]", "its token"),
    ),
    Part(
        "patterns",
        "Check [patterns] folder; this user must be able to read it.",
        ask=check_patterns,
    ),
    Part(
        "actions",
        f"Correct that [[actions]] and its addresses, {_REACH}.",
        ask=check_actions,
        read=lambda of: declared(of.settings),
        mending=Mending("the addresses of that [[actions]]", "its token"),
    ),
    Part(
        "adapters",
        f"Check that [adapters.NAME] url, {_REACH}.",
        ask=check_adapters,
        mending=Mending("url of that [adapters.NAME]", "its token"),
    ),
    Part(
        "oidc",
        f"Check [oidc] issuer, as the tokens name it, {_REACH}. Set jwks_url if it has no metadata.",
        ask=check_issuer,
        mending=Mending("[oidc] issuer or jwks_url", "[oidc]"),
    ),
    Part(
        "otel",
        f"Check [otel] endpoint (OTLP over HTTP, port 4318) and headers, {_REACH}.",
        ask=check_collector,
        mending=Mending("[otel] endpoint (OTLP over HTTP, port 4318)", "[otel] headers"),
    ),
    Part(
        "plugins",
        "Correct the manifest; `kortex check --plugin FILE` tries one (docs/plugins.md).",
        ask=lambda asked: check_plugins(asked.of.plugins, asked.of.settings),
        read=lambda of: plugin_problems(of.plugins),
        mending=Mending("endpoint.url of that manifest", "its auth"),
    ),
    Part(
        "tools",
        "Correct that [mcp.servers.*], [policy] or [[channels]]; see docs/mcp.md and docs/tools.md.",
        ask=check_tools,
        read=lambda of: check_toolsets((of.plugins,), of.settings),
    ),
)
