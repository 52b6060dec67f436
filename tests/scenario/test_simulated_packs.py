"""What triage says about incidents on stacks of every kind that it was not built on."""

import json
from pathlib import Path

import pytest

from bot.cli.main import main
from tests.evals.stacks import CASES, SET, write
from tests.plain_logging import logging_put_back

pytestmark = pytest.mark.may_block_the_loop


def test_every_culprit_is_found_and_a_noisy_day_is_healthy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in CASES:
        write(tmp_path, name)

    with logging_put_back(), pytest.raises(SystemExit) as end:
        main(["eval", str(tmp_path), "--json"])
    told = json.loads(capsys.readouterr().out)

    assert end.value.code == 0
    assert {
        one["id"].removeprefix(f"{SET}-"): (one["verdict"], one["suspects"][:1])
        for one in told["results"]
    } == {
        "kubernetes": ("cause", ["worker"]),
        "logs-only": ("cause", ["orders"]),
        "metrics-only": ("cause", ["payments"]),
        "noisy-day": ("healthy", []),
        "opentelemetry": ("cause", ["currency"]),
        "red-herring": ("cause", ["stock"]),
    }
    (of_set,) = told["sets"]
    assert (of_set["top_1"], of_set["false_alarm"], of_set["words"]) == (1.0, 0.0, 1.0)
