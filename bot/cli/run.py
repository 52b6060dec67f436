"""`kortex run`. What it does is in `bot.cli.serve`, imported once signals are taken."""

import gc
from pathlib import Path
from typing import Final

import click

from bot.upkeep.signals import Signals, heeding

MOST_WORKERS: Final = (
    16  # each has its part of Slack's limits and some 50 connections to PostgreSQL
)


@click.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    default=Path("kortex.toml"),
    metavar="PATH",
    help="The configuration (default: ./kortex.toml).",
)
@click.option(
    "--workers",
    type=click.IntRange(1, MOST_WORKERS),
    default=1,
    metavar="N",
    show_default=True,
    help="Run N processes on one port, one per core. Needs PostgreSQL.",
)
def run(config: Path, workers: int) -> int:
    """Serve the workspace of the configuration until stopped.

    SIGTERM or Ctrl-C stops: running answers end within 30 seconds. SIGHUP reads the configuration
    again.
    """

    def serve(signals: Signals) -> int:
        if workers > 1:
            from bot.cli.workers import run_workers

            return run_workers(config, workers, signals)
        # A start makes hardly any garbage; collections are a sixth of its time. On again once it serves.
        gc.disable()
        try:
            from bot.cli.serve import run_one

            return run_one(config, signals)
        finally:
            gc.enable()

    return heeding(Signals(), serve)
