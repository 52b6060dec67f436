"""One worker process of `kortex run --workers N`, started by the supervisor."""

import gc
import sys
from pathlib import Path

import structlog

from bot.app.start import RELOADED, Service, serving
from bot.app.stores import open_redactor
from bot.app.worker import Times, Worker
from bot.cli.invocation import guarded
from bot.cli.serve import stay
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError, load
from bot.slack.delivery.pacing import Rates
from bot.telemetry import logs
from bot.upkeep.reload import changed
from bot.upkeep.signals import Signals, heeding
from bot.upkeep.supervisor import Link

_log = structlog.get_logger(__name__)


def _main(signals: Signals) -> int:
    link = Link(int(sys.argv[1]))
    config, settings, worker, times, rates = link.parameters()
    link.watch()
    return guarded(lambda: _serve(config, settings, worker, times, rates, signals, link))


async def _serve(
    config: Path,
    settings: Settings,
    worker: Worker,
    times: Times,
    rates: Rates | None,
    signals: Signals,
    link: Link,
) -> int:
    structlog.contextvars.bind_contextvars(worker=worker.number)
    logs.configure(open_redactor(settings))
    _compare(settings, config)

    def ready(service: Service) -> None:
        service.reload.tell(link.report)
        gc.freeze()  # what the start made stays until the end
        _log.info("worker.serving", port=worker.port, own_port=worker.own_port)
        link.report()

    opening = serving(settings, rates, times=times, read=lambda: load(config), worker=worker)
    return await stay(opening, signals, ready, tell=lambda _: None)


def _compare(settings: Settings, config: Path) -> None:
    try:
        differs = changed(settings, load(config), RELOADED)
    except ConfigurationError as error:
        _log.warning("config.file_invalid", why=str(error), kept="what the service holds")
        return
    if differs:
        _log.warning(
            "config.file_differs",
            changed=sorted(differs & frozenset(RELOADED)),
            needs_restart=sorted(differs - frozenset(RELOADED)),
            kept="what the service holds",
        )


if __name__ == "__main__":
    sys.exit(heeding(Signals(), _main))
