"""`kortex run --workers N`: the service in N processes on PostgreSQL, behind one port."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bot.app import rules
from bot.app.worker import Times, Worker
from bot.cli.exit_codes import announce
from bot.cli.invocation import loaded, mendable
from bot.cli.serve import STOPPING
from bot.settings.environment import environment
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.slack.delivery.pacing import Rates
from bot.telemetry import logs
from bot.upkeep.signals import Signals
from bot.upkeep.supervisor import Supervisor
from bot.web.listener import bind_problem

# An app has at most ten connections of Socket Mode, and one more while Slack renews another
# (https://docs.slack.dev/apis/events-api/using-socket-mode).
MOST_SOCKETS: Final = 10
LEAST_EDITS: Final = 2  # of a worker in a minute: a placeholder and a final text
# Without the working directory on the path, where another `bot` may lie.
_COMMAND: Final = (sys.executable, "-P", "-m", "bot.cli.worker")


def run_workers(
    config: Path,
    count: int,
    signals: Signals,
    times: Times = Times(),  # noqa: B008 - frozen
    rates: Rates | None = None,
) -> int:
    """Run the supervisor until all workers have ended; returns the exit code.

    `rates` of the whole service replace those of the configuration.
    """
    logs.configure(None)
    return mendable(lambda: _supervised(config, count, signals, times, rates))


def _supervised(
    config: Path, count: int, signals: Signals, times: Times, rates: Rates | None
) -> int:
    held = loaded(config)
    _check(held, count)
    with ExitStack() as kept:
        port, *own = [kept.enter_context(_port(held, number)) for number in range(1 + count)]

        def parameters(number: int) -> object:
            return config, held, Worker(number, count, port, own[number]), times, rates

        def reloaded(settings: Settings) -> None:
            nonlocal held
            held = settings

        def ready() -> None:
            where = f"http://{held.http.host}:{port}/readyz"
            announce(f"kortex is serving with {count} workers; health at {where}")

        return Supervisor(
            count,
            _COMMAND,
            environment(),
            parameters,
            signals,
            on_ready=ready,
            on_stop=lambda: announce(STOPPING),
            on_reload=reloaded,
        ).run()


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
    edits = settings.slack.edits_per_minute
    if edits and edits < LEAST_EDITS * count:
        raise ConfigurationError(
            f"--workers {count}: each worker gets its part of [slack] edits_per_minute = {edits}, "
            f"and needs {LEAST_EDITS}. Use at most {edits // LEAST_EDITS} workers"
        )
    if settings.http.port and settings.http.port + count > 65535:
        raise ConfigurationError(
            f"--workers {count}: the workers' own ports follow [http] port = {settings.http.port}, "
            "and the last port is 65535. Choose a lower port"
        )


@contextmanager
def _port(settings: Settings, number: int) -> Iterator[int]:
    """Keep [http] port + `number` for the workers; for port 0, a free one.

    The sockets never listen. Each is bound alone first, which fails when another program has the
    port, and shared afterwards. Raises ConfigurationError.
    """
    host, port = settings.http.host, settings.http.port and settings.http.port + number
    with ExitStack() as kept:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, kind, protocol, _, address in dict.fromkeys(found):
                held = kept.enter_context(socket.socket(family, kind, protocol))
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                held.bind((address[0], port, *address[2:]))
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                port = port or held.getsockname()[1]
        except OSError as error:
            raise ConfigurationError(f"http.port: {bind_problem(error, host, port)}") from error
        yield port
