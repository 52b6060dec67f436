"""The simulated packs are packs: readable, small, the same each time they are written."""

from pathlib import Path

import pytest

from adapters.recorded.packs.archive import case_files
from adapters.recorded.packs.recording import read_recording
from bot.cli.eval.cases import truth_of
from bot.cli.eval.command import judged_cases
from tests.evals.signals import NOW
from tests.evals.stacks import CASES, write


@pytest.mark.parametrize("name", CASES)
def test_written_pack_is_read_and_small(tmp_path: Path, name: str) -> None:
    place = write(tmp_path, name)

    (found,) = judged_cases([tmp_path], lambda _: None)
    recording = read_recording(found)
    truth = truth_of(found)

    assert recording.case.now == NOW
    assert truth is not None
    assert truth.kind == name
    assert set(truth.culprit) <= set(recording.case.products)
    assert sum(file.stat().st_size for file in place.iterdir()) < 300_000


@pytest.mark.parametrize("name", CASES)
def test_pack_is_identical_each_time(tmp_path: Path, name: str) -> None:
    write(tmp_path / "a", name)
    write(tmp_path / "b", name)

    (first,), (second,) = case_files([tmp_path / "a"]), case_files([tmp_path / "b"])

    assert first.files == second.files
