"""What a round spends between our messages and a wire, without the time the network takes."""

import asyncio

from adapters.llm.port import decoding, encoding, measured


async def test_tasks_started_in_the_block_are_counted_and_other_tasks_are_not() -> None:
    async def decode() -> None:
        with decoding():
            sum(range(1000))

    with measured() as first:
        async with asyncio.TaskGroup() as group:
            group.create_task(decode())
        with encoding():
            sum(range(1000))
    told = (first.request_s, first.answer_s)
    await decode()

    assert min(told) > 0
    assert (first.request_s, first.answer_s) == told


async def test_rounds_at_the_same_time_are_measured_apart() -> None:
    async def one(times: int) -> float:
        with measured() as took:
            for _ in range(times):
                await asyncio.sleep(0)
                with decoding():
                    sum(range(1000))
        return took.answer_s

    async with asyncio.TaskGroup() as group:
        none, some = group.create_task(one(0)), group.create_task(one(3))

    assert none.result() == 0
    assert some.result() > 0
