"""The people on call, for a question in the thread.

A module of its own: the question reads every rota, and the rotas are cached for a minute.
"""

import re

import pytest

from tests.fixtures_service import shared_stage
from tests.scenario import test_on_call
from tests.scenario.test_on_call import SCRIPT, Rotas, rotas
from tests.stage import Stage

__all__ = ["SCRIPT", "rotas", "shared_stage"]

SETTINGS = test_on_call.SETTINGS

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_question_carries_the_names_of_the_people_on_call(
    shared_stage: Stage, rotas: Rotas
) -> None:
    rotas.broken.add("back")
    await shared_stage.answered("@kortex who is on call?", shared_stage.newcomer())

    asked = question_note(shared_stage)
    assert "mira (role mine)" in asked
    assert "could not be read just now (role back)" in asked


def question_note(stage: Stage) -> str:
    (line,) = re.findall(r"On call now: [^\\]*", stage.models.requests[-1].raw.decode())[-1:]
    return str(line)
