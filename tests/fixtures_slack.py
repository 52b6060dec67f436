"""An ask in a thread, quick rates, and a scheduler that runs beside a test."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask
from bot.slack.delivery.pacing import Rates
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.text.links import LinkPolicy
from bot.slack.text.markdown import CLOSE, lines
from bot.slack.text.mrkdwn import clean
from tools.redactor import Redacted

QUICK = Rates(
    edit_burst=10_000,
    edits_per_minute=1e9,
    message_gap_s=0.0,
    post_burst=10_000,
    posts_per_s=1e9,
    all_posts_burst=10_000,
    all_posts_per_minute=1e9,
    read_burst=10_000,
    reads_per_minute=1e9,
    append_burst=10_000,
    appends_per_minute=1e9,
    stream_burst=10_000,
    streams_per_minute=1e9,
    streams_at_once=10_000,
    delete_burst=10_000,
    deletes_per_minute=1e9,
)

_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(?<!\\)`[^`\n]+`")


def outside_code(markdown: str) -> str:
    """What a reader of Markdown takes for text."""
    return _CODE.sub("", _FENCED.sub("", markdown))


def faster(speed: int) -> Rates:
    """Slack's real rates on a clock that runs that fast."""
    real = Rates()
    return replace(
        real,
        edits_per_minute=real.edits_per_minute * speed,
        message_gap_s=real.message_gap_s / speed,
        posts_per_s=real.posts_per_s * speed,
        all_posts_per_minute=real.all_posts_per_minute * speed,
        reads_per_minute=real.reads_per_minute * speed,
        infos_per_minute=real.infos_per_minute * speed,
        persons_per_minute=real.persons_per_minute * speed,
        appends_per_minute=real.appends_per_minute * speed,
        streams_per_minute=real.streams_per_minute * speed,
        deletes_per_minute=real.deletes_per_minute * speed,
        placeholder_s=real.placeholder_s / speed,
        sooner_s=real.sooner_s / speed,
    )


ASK = Ask(
    Place(TeamId("T1"), ChannelId("C1"), MessageTs("1763700000.000100")),
    MessageTs("1763700000.000100"),
    Person(TeamId("T1"), UserId("U1")),
    Redacted("why?"),
)


@asynccontextmanager
async def running_beside(scheduler: EditScheduler) -> AsyncIterator[EditScheduler]:
    """Run it in a task of its own: a fixture is set up and torn down by different tasks."""
    entered, leave = asyncio.Event(), asyncio.Event()

    async def run() -> None:
        async with scheduler.running():
            entered.set()
            await leave.wait()

    running = asyncio.create_task(run())
    await entered.wait()
    try:
        yield scheduler
    finally:
        leave.set()
        await running


def safe_markdown(text: str, policy: LinkPolicy) -> str:
    """All lines as they are sent, with an open fence closed."""
    done = list(lines(clean(text), policy))
    closing = [CLOSE] if done and done[-1].after else []
    return "\n".join([line.safe for line in done] + closing)
