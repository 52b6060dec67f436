"""Answers about series of any name, unit and scale; at most one changes its shape."""

import json
from pathlib import Path

import pytest

from bot.cli.main import main
from tests.evals.shapes import KINDS, SHAPES, write_shape
from tests.plain_logging import logging_put_back

pytestmark = pytest.mark.may_block_the_loop


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_never_called_healthy_and_a_quiet_day_has_no_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    for seed in (1, 2):
        write_shape(tmp_path, kind, seed)

    with logging_put_back(), pytest.raises(SystemExit) as end:
        main(["eval", str(tmp_path), "--json"])
    told = json.loads(capsys.readouterr().out)

    wrong = "healthy" if kind in SHAPES else "cause"
    assert end.value.code == 0
    assert [one["verdict"] for one in told["results"] if one["verdict"] == wrong] == []
    assert len(told["results"]) == 2
