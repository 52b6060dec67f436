"""Live answers: first text soon, the newest state, and the whole final text, through any failure of
Slack.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from itertools import combinations

import pytest

from bot.domain.ids import MessageTs, TurnId
from bot.domain.turn_events import TextDelta, TurnFinished
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.ports.platform import AnswerStream
from bot.slack.api.web_api import RateLimited, Refused, Unreachable
from bot.slack.delivery.outbox import Outbox, Patience
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.text.limits import UPDATE_TEXT_BYTES
from bot.slack.views.render import render
from bot.slack.views.surface import SlackSurface
from tests.fakes.slack_web import FakeSlackWeb, Lost
from tests.fixtures_slack import ASK, QUICK, running_beside
from tests.golden.slack_views import EVIDENCE, LONG, OUTCOMES, finished, started, view

FINAL = finished(text=LONG, outcomes=OUTCOMES, evidence=EVIDENCE)
WHOLE = [part.text for part in render(view([FINAL]))]


@pytest.fixture
def slack() -> FakeSlackWeb:
    return FakeSlackWeb()


@pytest.fixture
async def scheduler() -> AsyncIterator[EditScheduler]:
    async with running_beside(EditScheduler(QUICK)) as running:
        yield running


@pytest.fixture
def surface(slack: FakeSlackWeb, scheduler: EditScheduler) -> SlackSurface:
    return another_process(slack, scheduler)


def another_process(slack: FakeSlackWeb, scheduler: EditScheduler) -> SlackSurface:
    """A surface that remembers nothing."""
    outbox = Outbox(slack, scheduler, bot_user_id="UBOT")
    return SlackSurface(outbox, patience=Patience(backoff_s=0.001))


async def test_the_first_text_is_edited_in_without_waiting(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    stream.feed(TextDelta("Checkout fails"))
    await slack.until("chat.update")

    assert slack.texts() == ["Checkout fails"]
    await stream.aclose()


async def test_the_first_permitted_text_does_not_wait_for_a_held_one(
    slack: FakeSlackWeb,
) -> None:
    async with running_beside(EditScheduler(replace(QUICK, message_gap_s=3600.0))) as scheduler:
        surface = another_process(slack, scheduler)
        stream = surface.stream(ASK, await surface.open_answer(ASK))
        stream.feed(TextDelta("Calls "))
        for _ in range(20):
            await asyncio.sleep(0)
        stream.feed(TextDelta("fail\n\n"))
        async with asyncio.timeout(5):
            await slack.until("chat.update")

        assert slack.texts() == ["Calls fail"]
        await stream.aclose()


async def test_text_that_arrives_during_an_edit_is_one_more_edit(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    gate = slack.gates["chat.update"] = asyncio.Event()
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    stream.feed(TextDelta("one "))
    await slack.until("chat.update", begun=True)
    for word in ("two ", "three ", "four "):
        stream.feed(TextDelta(word))
    gate.set()
    await slack.until("chat.update", 2)

    assert slack.texts() == ["one two three four"]
    assert slack.count("chat.update") == 2
    await stream.aclose()


async def test_a_half_written_link_is_not_sent(slack: FakeSlackWeb, surface: SlackSurface) -> None:
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    stream.feed(TextDelta("see https://ev"))
    await slack.until("chat.update")
    stream.feed(TextDelta("il.example/x now"))
    await slack.until("chat.update", 2)

    assert [str(args["text"]) for method, args in slack.calls if method == "chat.update"] == [
        "see",
        "see `https://evil.example/x` now",
    ]
    await stream.aclose()


async def test_the_final_has_the_whole_text_in_as_many_messages_as_needed(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    stream.feed(TextDelta("so far"))
    await stream.finish(FINAL)

    assert slack.texts() == WHOLE
    assert max(len(text.encode()) for text in slack.texts()) <= UPDATE_TEXT_BYTES
    assert "turn:stop" not in str(slack.messages)


async def test_the_final_is_rendered_once_for_all_its_messages(
    slack: FakeSlackWeb, scheduler: EditScheduler
) -> None:
    rendered: list[str] = []

    def redact(text: str) -> str:
        rendered.append(text)
        return text

    surface = SlackSurface(Outbox(slack, scheduler, bot_user_id="UBOT"), redact=redact)
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    await stream.finish(FINAL)

    assert slack.texts() == WHOLE
    assert len(rendered) == 1


async def test_a_live_answer_fits_a_phone_and_its_end_removes_nothing(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    stream.feed(TextDelta(LONG))
    await slack.until("chat.update")
    (live,) = slack.texts()
    await stream.finish(replace(FINAL, is_kept=True))

    (text,) = slack.texts()
    assert text.startswith(live)
    assert slack.count("chat.postMessage") == 1


async def test_live_messages_that_the_final_does_not_need_are_removed(
    slack: FakeSlackWeb, scheduler: EditScheduler
) -> None:
    stream = await grown(slack, scheduler)
    await stream.finish(finished(text="Short after all."))

    assert slack.texts() == ["Short after all."]


async def test_a_leftover_that_cannot_be_removed_is_emptied(
    slack: FakeSlackWeb, scheduler: EditScheduler
) -> None:
    stream = await grown(slack, scheduler)
    refused = [Refused("chat.delete", "cant_delete_message")] * len(WHOLE)
    slack.faults["chat.delete"].extend(refused)
    await stream.finish(finished(text="Short after all."))

    assert slack.texts() == ["Short after all."] + ["(continued above)"] * (len(WHOLE) - 1)


async def test_finishing_again_after_a_crash_posts_nothing_twice(
    slack: FakeSlackWeb, surface: SlackSurface, scheduler: EditScheduler
) -> None:
    ts = await surface.open_answer(ASK)
    await surface.stream(ASK, ts).finish(FINAL)
    again = another_process(slack, scheduler)

    assert await again.open_answer(ASK) == ts
    await again.stream(ASK, ts).finish(FINAL)

    assert slack.texts() == WHOLE


async def test_a_crash_between_the_messages_of_the_final_is_repaired(
    slack: FakeSlackWeb, surface: SlackSurface, scheduler: EditScheduler
) -> None:
    ts = await surface.open_answer(ASK)
    slack.gates["chat.postMessage"] = asyncio.Event()
    dying = asyncio.create_task(surface.stream(ASK, ts).finish(FINAL))
    await slack.until("chat.postMessage", 2, begun=True)
    dying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dying
    del slack.gates["chat.postMessage"]

    await another_process(slack, scheduler).stream(ASK, ts).finish(FINAL)

    assert slack.texts() == WHOLE


async def test_the_leftovers_of_a_process_that_died_are_removed(
    slack: FakeSlackWeb, surface: SlackSurface, scheduler: EditScheduler
) -> None:
    ts = await surface.open_answer(ASK)
    stream = surface.stream(ASK, ts)
    await stream.finish(FINAL)

    await another_process(slack, scheduler).stream(ASK, ts).finish(finished(text="Short."))

    assert slack.texts() == ["Short."]


@pytest.mark.parametrize("method", ["chat.update", "chat.postMessage", "conversations.replies"])
@pytest.mark.parametrize(
    "fault",
    [
        RateLimited("chat.update", 0.01),
        RateLimited("chat.postMessage", 0.01),
        RateLimited("conversations.replies", 0.01),
        Unreachable("any", "cut"),
        Refused("any", "internal_error"),
        Lost(Unreachable("any", "answer lost")),
    ],
    ids=repr,
)
async def test_the_final_survives_temporary_failures_without_duplicates(
    slack: FakeSlackWeb,
    surface: SlackSurface,
    scheduler: EditScheduler,
    method: str,
    fault: Exception | Lost,
) -> None:
    ts = await surface.open_answer(ASK)
    slack.faults[method].extend([fault, fault])
    await another_process(slack, scheduler).stream(ASK, ts).finish(FINAL)

    assert slack.texts() == WHOLE


@pytest.mark.parametrize("code", ["invalid_blocks", "msg_blocks_too_long"])
async def test_a_refused_layout_is_sent_again_as_plain_text(
    slack: FakeSlackWeb, surface: SlackSurface, code: str
) -> None:
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    slack.faults["chat.update"].append(Refused("chat.update", code))
    await stream.finish(finished(text="The answer."))

    assert slack.texts() == ["The answer."]
    assert [message["blocks"] for message in slack.messages.values()] == [[]]


@pytest.mark.parametrize("code", ["edit_window_closed", "msg_too_long"])
async def test_an_answer_that_may_no_longer_be_edited_is_posted_again(
    slack: FakeSlackWeb, surface: SlackSurface, code: str
) -> None:
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    slack.faults["chat.update"].append(Refused("chat.update", code))
    await stream.finish(finished(text="The answer."))

    assert slack.texts() == ["The answer."]


@pytest.mark.parametrize("part", range(len(WHOLE)))
@pytest.mark.parametrize(
    "code",
    [
        "edit_window_closed",
        "msg_too_long",
        "cant_update_message",
        "block_mismatch",
        "invalid_blocks",
        "invalid_blocks_format",
        "msg_blocks_too_long",
    ],
)
async def test_parts_stay_in_order_when_one_may_no_longer_be_edited(
    slack: FakeSlackWeb, scheduler: EditScheduler, code: str, part: int
) -> None:
    stream = await grown(slack, scheduler)
    slack.uneditable[sorted(slack.messages)[part]] = Refused("chat.update", code)
    await stream.finish(FINAL)

    assert slack.texts() == WHOLE


@pytest.mark.parametrize("code", ["edit_window_closed", "msg_too_long", "cant_update_message"])
@pytest.mark.parametrize("parts", list(combinations(range(len(WHOLE)), 2)), ids=str)
async def test_parts_stay_in_order_when_two_may_no_longer_be_edited(
    slack: FakeSlackWeb, scheduler: EditScheduler, code: str, parts: tuple[int, ...]
) -> None:
    stream = await grown(slack, scheduler)
    for part in parts:
        slack.uneditable[sorted(slack.messages)[part]] = Refused("chat.update", code)
    await stream.finish(FINAL)

    assert slack.texts() == WHOLE


@pytest.mark.parametrize("part", range(len(WHOLE)))
async def test_an_edit_in_a_channel_that_is_gone_posts_nothing(
    slack: FakeSlackWeb, scheduler: EditScheduler, part: int
) -> None:
    stream = await grown(slack, scheduler)
    gone = SurfaceGone("chat.update: is_inactive")
    slack.uneditable[sorted(slack.messages)[part]] = gone
    with pytest.raises(SurfaceGone):
        await stream.finish(FINAL)

    assert slack.count("chat.postMessage") == len(WHOLE)


@pytest.mark.parametrize("posts", range(1, len(WHOLE)))
async def test_a_crash_while_parts_are_reposted_leaves_their_order(
    slack: FakeSlackWeb, surface: SlackSurface, scheduler: EditScheduler, posts: int
) -> None:
    ts = await surface.open_answer(ASK)
    await surface.stream(ASK, ts).finish(finished(text=f"Before.\n\n{LONG}"))
    slack.uneditable[min(slack.messages)] = Refused("chat.update", "edit_window_closed")
    before = slack.count("chat.postMessage")
    dying = asyncio.create_task(another_process(slack, scheduler).stream(ASK, ts).finish(FINAL))
    await slack.until("chat.postMessage", before + posts)
    dying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dying

    await another_process(slack, scheduler).stream(ASK, ts).finish(FINAL)

    assert slack.texts() == WHOLE


async def test_an_outdated_message_that_cannot_be_removed_does_not_delay_the_answer(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    slack.faults["chat.update"].append(Refused("chat.update", "edit_window_closed"))
    slack.faults["chat.delete"].append(Refused("chat.delete", "cant_delete_message"))
    await stream.finish(finished(text="The answer."))

    assert slack.texts() == ["Looking into it: why?", "The answer."]


async def test_a_deleted_answer_is_reported_as_gone(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    slack.messages.clear()

    with pytest.raises(SurfaceGone):
        await stream.finish(FINAL)
    assert slack.texts() == []


LAST = len(WHOLE) - 1


def without(part: int) -> list[str]:
    return WHOLE[:part] + WHOLE[part + 1 :]


async def grown(slack: FakeSlackWeb, scheduler: EditScheduler) -> AnswerStream:
    """An answer that has as many messages as its next end will have, with other words."""
    ts = await another_process(slack, scheduler).open_answer(ASK)
    stream = another_process(slack, scheduler).stream(ASK, ts)
    await stream.finish(finished(text=f"Before.\n\n{LONG}"))
    return another_process(slack, scheduler).stream(ASK, ts)


async def finish_while(
    slack: FakeSlackWeb, stream: AnswerStream, final: TurnFinished, act: Callable[[], None]
) -> None:
    """Something happens in the thread while the first edit of the end is under way."""
    gate = slack.gates["chat.update"] = asyncio.Event()
    finishing = asyncio.create_task(stream.finish(final))
    await slack.until("chat.update", slack.begun["chat.update"] + 1, begun=True)
    act()
    gate.set()
    await finishing


def deletes(slack: FakeSlackWeb, part: int) -> Callable[[], None]:
    return lambda: slack.messages.__delitem__(sorted(slack.messages)[part])


@pytest.mark.parametrize("part", range(LAST))
async def test_a_part_deleted_by_a_person_is_not_posted_again(
    slack: FakeSlackWeb, scheduler: EditScheduler, part: int
) -> None:
    stream = await grown(slack, scheduler)
    await finish_while(slack, stream, FINAL, deletes(slack, part))

    assert slack.texts() == without(part)
    assert slack.count("chat.postMessage") == len(WHOLE)


@pytest.mark.parametrize("more", ["", f"\n\nMore.\n\n{LONG}"], ids=["same", "longer"])
async def test_the_last_part_is_posted_again_because_the_text_continues_there(
    slack: FakeSlackWeb, scheduler: EditScheduler, more: str
) -> None:
    stream = await grown(slack, scheduler)
    final = replace(FINAL, text=LONG + more)
    await finish_while(slack, stream, final, deletes(slack, LAST))

    assert slack.texts() == [part.text for part in render(view([final]))]


@pytest.mark.parametrize("part", range(LAST))
async def test_a_successor_posts_no_deleted_part_again(
    slack: FakeSlackWeb, surface: SlackSurface, scheduler: EditScheduler, part: int
) -> None:
    ts = await surface.open_answer(ASK)
    await surface.stream(ASK, ts).finish(finished(text=f"Before.\n\n{LONG}"))
    del slack.messages[sorted(slack.messages)[part]]
    for _ in range(2):
        await another_process(slack, scheduler).stream(ASK, ts).finish(FINAL)

    assert slack.texts() == without(part)


async def test_a_part_that_cannot_be_edited_follows_a_deleted_one(
    slack: FakeSlackWeb, scheduler: EditScheduler
) -> None:
    stream = await grown(slack, scheduler)
    first, second, *_ = sorted(slack.messages)
    slack.uneditable[first] = Refused("chat.update", "edit_window_closed")
    await finish_while(slack, stream, FINAL, lambda: slack.messages.__delitem__(second))

    assert slack.texts() == WHOLE


async def test_an_answer_with_every_part_deleted_is_reported_as_gone(
    slack: FakeSlackWeb, scheduler: EditScheduler
) -> None:
    stream = await grown(slack, scheduler)
    with pytest.raises(SurfaceGone):
        await finish_while(slack, stream, FINAL, slack.messages.clear)

    assert slack.texts() == []


async def test_retries_end(slack: FakeSlackWeb, surface: SlackSurface) -> None:
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    slack.faults["chat.update"].extend([Unreachable("chat.update", "cut")] * 50)

    with pytest.raises(SurfaceFailed):
        await stream.finish(FINAL)


async def test_nothing_is_edited_after_the_end(slack: FakeSlackWeb, surface: SlackSurface) -> None:
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    await stream.finish(finished(text="The answer."))
    stream.feed(TextDelta("late"))
    await stream.aclose()

    assert slack.texts() == ["The answer."]


async def test_closing_waits_for_the_running_edit(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    gate = slack.gates["chat.update"] = asyncio.Event()
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    stream.feed(started("a"))
    await slack.until("chat.update", begun=True)
    closing = asyncio.create_task(stream.aclose())
    await asyncio.sleep(0)
    assert not closing.done()
    gate.set()
    await closing

    assert slack.texts() == ["Looking at the logs of checkout…"]


@pytest.mark.parametrize("known", [True, False], ids=["edited", "to be posted"])
async def test_an_answer_taken_over_by_another_process_is_left_alone(
    slack: FakeSlackWeb, surface: SlackSurface, known: bool
) -> None:
    ts = await surface.open_answer(ASK) if known else MessageTs("")
    method = "chat.update" if known else "chat.postMessage"
    gate = slack.gates[method] = asyncio.Event()
    stream = surface.stream(ASK, ts)
    stream.feed(TextDelta("one "))
    await slack.until(method, begun=True)
    stream.feed(TextDelta("two "))
    surface.stop_edits(ASK.turn_id)
    surface.stop_edits(TurnId("turn:of:another"))
    stream.feed(TextDelta("three "))
    gate.set()
    for _ in range(50):
        await asyncio.sleep(0)

    assert slack.count(method) == 1
    assert "two" not in "".join(slack.texts())
    await stream.aclose()


async def test_a_final_with_a_soon_edit_is_edited_and_its_next_messages_do_not_wait(
    slack: FakeSlackWeb,
) -> None:
    soon = replace(QUICK, edit_burst=1, edits_per_minute=60 / 2.5)
    async with running_beside(EditScheduler(soon)) as scheduler:
        surface = another_process(slack, scheduler)
        stream = surface.stream(ASK, await surface.open_answer(ASK))
        await scheduler.edit_permit()
        finishing = asyncio.create_task(stream.finish(FINAL))
        await slack.until("chat.postMessage", len(WHOLE))

        assert slack.texts()[1:] == WHOLE[1:]
        finishing.cancel()
        await asyncio.wait({finishing})


async def test_an_end_that_slack_refused_can_be_tried_again(
    slack: FakeSlackWeb, surface: SlackSurface
) -> None:
    """The step that shows an end runs again when the database failed after Slack did."""
    stream = surface.stream(ASK, await surface.open_answer(ASK))
    slack.faults["chat.update"].extend([Unreachable("chat.update", "cut")] * 50)
    with pytest.raises(SurfaceFailed):
        await stream.finish(FINAL)
    slack.faults["chat.update"].clear()

    async with asyncio.timeout(10):
        await stream.finish(FINAL)

    assert slack.texts() == WHOLE
    await stream.aclose()
