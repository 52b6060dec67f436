"""The check of statements puts no mark on an answer that the built-in triage gives."""

from pathlib import Path

import pytest

from bot.cli.eval.command import judged_cases
from tests.evals.own_marks import marked_sentences
from tests.evals.stacks import CASES, write
from tests.plain_logging import logging_put_back

pytestmark = pytest.mark.may_block_the_loop


async def test_no_sentence_about_a_recorded_pack_is_marked(tmp_path: Path) -> None:
    packs = tmp_path / "packs"
    for name in CASES:
        write(packs, name)

    with logging_put_back():
        cases = judged_cases([packs], lambda _: None)
        marked = [each async for each in marked_sentences(cases, tmp_path)]

    assert marked == [[]] * len(CASES)
