"""`kortex check`: the table of what works, and one plugin's manifest tried by itself."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import click
from pydantic import JsonValue

from bot.commands.display import print_json, print_rows
from bot.commands.ending import FAILED, OK
from bot.commands.health_check import examine
from bot.commands.invocation import config_option, guarded, loaded
from bot.commands.options import json_option
from bot.commands.patience import process_age
from bot.commands.plugin_check import try_plugin
from bot.commands.unwaited import UnwaitedThreads
from bot.reports.finding import Finding
from bot.settings.model import Settings

_TO_MEND = ("FAILED", "WARNING")


@click.command()
@click.option("--offline", is_flag=True, help="Read the configuration only; no packet leaves.")
@click.option(
    "--plugin",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Validate this manifest and call it once. Needs no other configuration.",
)
@click.option(
    "--arguments",
    default="",
    metavar="JSON",
    help="With --plugin: the arguments of the call (default: the examples of its parameters).",
)
@json_option
@config_option
def check(config: Path, as_json: bool, offline: bool, plugin: Path | None, arguments: str) -> int:
    """Try each part of the configuration. Exit 1: a configured part does not work.

    Kortex asks every configured system a small question and changes nothing. It takes at most 15
    seconds.

    \b
    Examples:
      kortex check
      kortex check --offline --config /etc/kortex/kortex.toml
      kortex check --plugin plugins/jira.yaml --arguments '{"query": "checkout"}'
    """
    if plugin is not None:
        there = config.exists()
        return guarded(lambda: _try_plugin(config, plugin, arguments, has_config=there))
    age_s = process_age()
    return guarded(lambda: _check(loaded(config), age_s, as_json=as_json, offline=offline))


async def _try_plugin(config: Path, file: Path, arguments: str, *, has_config: bool) -> int:
    settings = loaded(config) if has_config else Settings()
    name, outcome = await try_plugin(settings, file, arguments)
    print(f"{file}: valid, as {name}")
    print(f"{'ok' if outcome.record.ok else 'FAILED'}: {outcome.content}")
    return OK if outcome.record.ok else FAILED


async def _check(
    settings: Settings, age_s: Callable[[], float], *, as_json: bool, offline: bool
) -> int:
    asyncio.get_running_loop().set_default_executor(UnwaitedThreads())
    found = sorted(
        await examine(settings, offline=offline, age_s=age_s),
        key=lambda finding: finding.rank,
    )
    if as_json:
        print_json([_as_json(finding) for finding in found])
    else:
        print_rows([(f"{each.mark:<7}", each.part, _told(each)) for each in found])
        if offline:
            print("No system was asked (--offline): only the configuration was read.")
    return FAILED if any(f.fails for f in found) else OK


def _as_json(finding: Finding) -> JsonValue:
    return {
        "part": finding.part,
        "ok": finding.ok,
        "configured": finding.configured,
        "warning": finding.warning,
        "detail": finding.detail,
        "mend": finding.mend if finding.mark in _TO_MEND else "",
    }


def _told(finding: Finding) -> str:
    to_mend = finding.mark in _TO_MEND
    return f"{finding.detail}\n→ {finding.mend}" if to_mend else finding.detail
