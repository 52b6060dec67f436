"""kill -9 around a first look: no repeated look, and the answer comes once."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.model_server import Round
from tests.scenario.durability.world import World, world_on

ASK = "why is checkout slow"
FINAL = "The new version leaks connections"
AFTER_LOOK = 2  # the round: the conversation has the look as if the model had asked for it
QUERY = "loki GET query_range before"
LOOK = ["look", "tool:1:core__error_patterns and 1 more"]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with world_on("sqlite", tmp_path) as made:
        text = made.config.read_text()
        made.config.write_text(text.replace("first_look = false", "first_look = true"))
        made.scripts[ASK] = [Round(), Round(text=(f"{FINAL} ", "[E1]."))]
        yield made


async def test_a_first_look_that_finished_before_a_kill_is_not_repeated(
    world: World,
) -> None:
    hold = world.hold_round(ASK, AFTER_LOOK, at=-1)
    first = await world.start()
    asked = await world.ask(ASK)
    await hold.wait()
    queries = world.gates.passed[QUERY]
    steps = await world.finished_steps(asked)

    await world.kill(first)
    world.open()
    await world.start()
    await world.shows(asked, FINAL)
    await world.settled()

    assert [name for name in steps if name in LOOK] == LOOK
    assert queries > 0
    assert world.gates.passed[QUERY] == queries
    assert world.rounds == {(ASK, AFTER_LOOK): 2}
    sent = [request.raw.decode() for request in world.model.requests]
    assert len(set(sent)) == 1
    assert "core__error_patterns" in sent[0]
    (answer,) = world.answers(asked)
    assert answer.text.count(FINAL) == 1


async def test_an_interrupted_first_look_is_repeated_and_the_model_is_asked_once(
    world: World,
) -> None:
    hold = world.gates.hold(QUERY)
    first = await world.start()
    asked = await world.ask(ASK)
    await hold.wait()

    await world.kill(first)
    world.open()
    await world.start()
    await world.shows(asked, FINAL)
    await world.settled()

    assert world.rounds == {(ASK, AFTER_LOOK): 1}
