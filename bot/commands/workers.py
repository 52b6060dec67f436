"""`kortex run --workers N`: the service in N processes on PostgreSQL, behind one port."""

import gc
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import structlog

from bot.commands import verbs
from bot.commands.ending import announce
from bot.commands.held import Held
from bot.service.lifecycle import RELOADED, Service, serving
from bot.service.times import Times
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError, load
from bot.slack.sending.pacing import Rates
from bot.slack.sending.shared_buckets import SharedShelf
from bot.telemetry import logs
from bot.upkeep.signals import Signals
from bot.upkeep.supervisor import Supervisor, Worker
from bot.web.listener import bind_problem
from bot.web.reserved import reserved
from bot.web.siblings import LOOPBACK, Siblings
from bot.wiring import rules
from bot.wiring.stores import open_redactor

# An app has at most ten connections of Socket Mode, and one more while Slack renews another
# (https://docs.slack.dev/apis/events-api/using-socket-mode).
MOST_SOCKETS: Final = 10


def run_workers(
    config: Path,
    count: int,
    signals: Signals,
    times: Times = Times(),  # noqa: B008 - frozen
    rates: Rates | None = None,
) -> int:
    """The exit code, of the supervisor and of each worker in its own process.

    `rates` of the whole service, in place of what the configuration says.
    """
    logs.configure(None)
    return verbs.mendable(lambda: _supervised(config, count, signals, times, rates))


def _supervised(
    config: Path, count: int, signals: Signals, times: Times, rates: Rates | None
) -> int:
    settings = verbs.loaded(config)
    _check(settings, count)
    http = settings.http
    with ExitStack() as kept:
        try:
            port = kept.enter_context(reserved(http.host, http.port))
            ports = [kept.enter_context(reserved(LOOPBACK, 0)) for _ in range(count)]
        except OSError as error:
            why = bind_problem(error, http.host, http.port)
            raise ConfigurationError(f"http.port: {why}") from error

        def ready() -> None:
            where = f"http://{http.host}:{port}/readyz"
            announce(f"kortex is serving with {count} workers; health at {where}")

        rates = rates or Rates.with_edits(settings.slack.edits_per_minute)
        rates = rates.shared(SharedShelf(), count)
        held = Held(settings, lambda: load(config), RELOADED)
        found = Supervisor(
            count,
            signals,
            ready,
            lambda: announce(verbs.STOPPING),
            reloading=held.asked,
            reloaded=held.taken,
        ).run()
        if isinstance(found, int):
            return found
        siblings = Siblings(found.number, port, ports)
        return verbs.guarded(lambda: _serve(config, held, signals, found, siblings, times, rates))


def _check(settings: Settings, count: int) -> None:
    if rules.sqlite_file(settings) is not None:
        raise ConfigurationError(
            f"--workers {count} needs PostgreSQL: SQLite has one writer, and one process owns its "
            'file. Leave --workers out, or set [database] url = "postgresql://…" '
            "(docs/deploying.md)"
        )
    if settings.slack.mode == "socket" and count > MOST_SOCKETS:
        raise ConfigurationError(
            f"--workers {count}: Slack gives an app {MOST_SOCKETS} connections of Socket Mode, and "
            'each worker has one. Take fewer, or set [slack] mode = "http"'
        )


async def _serve(
    config: Path,
    held: Held,
    signals: Signals,
    worker: Worker,
    siblings: Siblings,
    times: Times,
    rates: Rates,
) -> int:
    structlog.contextvars.bind_contextvars(worker=worker.number)
    settings = held.settings
    logs.configure(open_redactor(settings))
    held.tell()

    def ready(service: Service) -> None:
        service.reload.tell(worker.reloaded)
        gc.freeze()  # what the start made stays until the end
        worker.serves()

    opening = serving(settings, rates, times=times, read=lambda: load(config), siblings=siblings)
    return await verbs.stay(opening, signals, ready, tell=_nobody)


def _nobody(_text: str) -> None:
    """The supervisor says it for all."""
