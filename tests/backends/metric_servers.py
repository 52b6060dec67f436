"""Starts the system's own Prometheus and VictoriaMetrics on ephemeral ports, already holding data."""

import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

import pytest

from tests.fakes.prometheus_server import StoredSeries

_START_S = 30.0


def binary(name: str) -> str:
    """The path of a program. Fails the test, saying what to install, when it is missing."""
    path = shutil.which(name)
    if path is None:
        pytest.fail(
            f"{name} is not installed; on Debian: apt-get install --no-install-recommends "
            "prometheus victoria-metrics nats-server prometheus-alertmanager pgbouncer"
        )
    return path


@contextmanager
def prometheus(folder: Path, series: Sequence[StoredSeries]) -> Iterator[str]:
    """A Prometheus with blocks made before it starts: later ones may not overlap its head."""
    blocks, openmetrics = folder / "data", folder / "samples.om"
    openmetrics.write_text(_openmetrics(series))
    subprocess.run(
        [
            binary("promtool"),
            "tsdb",
            "create-blocks-from",
            "openmetrics",
            "-q",
            openmetrics,
            blocks,
        ],
        check=True,
        capture_output=True,
    )
    (folder / "prometheus.yml").write_text("global: {scrape_interval: 15s}\n")
    port = free_port()
    command = [
        binary("prometheus"),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={blocks}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with running(command, f"http://127.0.0.1:{port}/-/ready", folder / "prometheus.log"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def victoria_metrics(
    folder: Path, series: Sequence[StoredSeries] = (), retention: str = "2"
) -> Iterator[str]:
    """A VictoriaMetrics filled through its import, showing also its newest 30 s.

    `retention` is in months, or as its flag takes it.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        binary("victoria-metrics"),
        f"-storageDataPath={folder / 'data'}",
        f"-httpListenAddr=127.0.0.1:{port}",
        f"-retentionPeriod={retention}",
        "-search.latencyOffset=0s",
    ]
    with running(command, f"{url}/health", folder / "victoria-metrics.log"):
        body = "".join(f"{line}\n" for line in _exposition(series, 1000))
        urllib.request.urlopen(f"{url}/api/v1/import/prometheus", body.encode(), timeout=10).close()
        urllib.request.urlopen(f"{url}/internal/force_flush", timeout=10).close()
        yield url


@contextmanager
def running(command: Sequence[str], ready_url: str, log: Path) -> Iterator[None]:
    """A program that answers at `ready_url`; its output is in `log`. It ends with the body."""
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        try:
            _wait_until_ready(process, ready_url, log)
            yield
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"{process.args!r} did not start:\n{log.read_text()[-2000:]}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _openmetrics(series: Sequence[StoredSeries]) -> str:
    """One family after the other, seconds, counters typed without their suffix, and an end."""
    families: dict[str, list[StoredSeries]] = {}
    for one in series:
        families.setdefault(one.name, []).append(one)
    lines: list[str] = []
    for name, members in families.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines.append(f"# TYPE {name.removesuffix('_total')} {kind}")
        lines.extend(_exposition(members, 1))
    return "\n".join([*lines, "# EOF", ""])


def _exposition(series: Iterable[StoredSeries], ticks_per_s: int) -> Iterator[str]:
    for one in series:
        for at_s, value in one.samples:
            yield f"{one.name}{{{_labels(one.labels)}}} {value!r} {round(at_s * ticks_per_s)}"


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())
