"""A case gives the same verdict whether its files are read or a real VictoriaMetrics holds it."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.http.client import http_client
from adapters.recorded.packs.archive import case_files
from adapters.recorded.packs.recording import read_recording
from adapters.recorded.packs.server_import import load_metrics
from bot.cli.main import main
from tests.backends.metric_servers import victoria_metrics
from tests.evals.stacks import CASES, write
from tests.plain_logging import logging_put_back

pytestmark = [pytest.mark.backends, pytest.mark.may_block_the_loop]


@pytest.fixture(scope="module")
def victoria_metrics_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with victoria_metrics(tmp_path_factory.mktemp("victoria"), retention="100y") as url:
        yield url


def verdicts(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> dict[str, tuple[str, list[str]]]:
    with logging_put_back(), pytest.raises(SystemExit):
        main(["eval", *arguments, "--json"])
    told = capsys.readouterr()
    sys.stderr.write(told.err)
    results = json.loads(told.out)["results"]
    return {one["id"]: (one["verdict"], one["suspects"]) for one in results}


def test_same_verdicts_from_files_and_from_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], victoria_metrics_url: str
) -> None:
    for name in CASES:
        write(tmp_path, name)

    recorded = verdicts(capsys, str(tmp_path))
    served = verdicts(capsys, str(tmp_path), "--metrics-url", victoria_metrics_url)

    assert len(recorded) == len(CASES)
    assert served == recorded


async def put_into(url: str, folder: Path) -> None:
    (found,) = case_files([folder])
    async with http_client(base_url=url) as client:
        await load_metrics(client, read_recording(found).series or (), "recorded")


def test_incident_recorded_from_a_server_keeps_its_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put = write(tmp_path / "put", "metrics-only")
    config, pack = tmp_path / "kortex.toml", tmp_path / "taken"
    with victoria_metrics(tmp_path, retention="100y") as url:
        asyncio.run(put_into(url, put))
        config.write_text(
            f'[database]\nurl = "sqlite+aiosqlite:///{tmp_path}/k.db"\n'
            f'[observe.metrics]\nkind = "prometheus"\nurl = "{url}"\n'
        )
        times = ["--since", "2026-11-20T13:40", "--until", "2026-11-20T14:00", "--before", "2h"]
        products = [
            "--products",
            "shop,basket,payments,stock",
            "--asked",
            "why does the shop fail?",
        ]
        where = ["--config", str(config), "--output", str(pack)]
        with logging_put_back(), pytest.raises(SystemExit) as end:
            main(["incident", "record", *where, *times, *products])
    assert end.value.code == 0
    capsys.readouterr()
    (pack / "truth.json").write_text((put / "truth.json").read_text())

    (taken,), (original,) = (verdicts(capsys, str(one)).values() for one in (pack, put))

    assert taken == original
    assert taken[1][0] == "payments"


def test_server_with_a_short_retention_gets_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "packs", "metrics-only")
    about = json.loads((folder / "case.json").read_text())
    series = [json.loads(line) for line in (folder / "metrics.ndjson").read_text().splitlines()]
    years = 10 * 365 * 86_400
    old = [
        {**one, "points": [[at - years, value] for at, value in one["points"]]} for one in series
    ]
    (folder / "case.json").write_text(json.dumps({**about, "now": "2016-11-22T14:00:00Z"}))
    (folder / "metrics.ndjson").write_text("\n".join(map(json.dumps, old)))

    with victoria_metrics(tmp_path) as url:
        assert verdicts(capsys, str(folder), "--metrics-url", url) == {}

    assert "-retentionPeriod=100y" in capsys.readouterr().err
