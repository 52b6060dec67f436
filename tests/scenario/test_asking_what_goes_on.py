"""`/kortex status` and the home tab on the wire: each person reads what they may see, in both transports."""

import asyncio
import json
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime

from bot.demo.workspace.people import Channel
from bot.demo.workspace.seeds import CHECKOUT, GUEST, MEMBER, RESPONDER
from bot.domain.ids import ChannelId, MessageTs, UserId
from bot.domain.overview import RunningQuestion
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import Start, stage
from tests.scenario.test_slack_ingress import Bot, bot, workspace
from tests.stage import question_of, results

__all__ = ["bot", "stage", "workspace"]

SECRET = "G0SECRET01"
PROPOSE = Call(
    "core__propose_action",
    {"action": "rollback-deploy", "product": "checkout", "params": {}, "rationale": "it leaks"},
)
HELD: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)


def script(request: Recorded) -> Round:
    if "wait" in question_of(request):
        return Round(text=("I begin.", "never"), hold=HELD["wait"], hold_at=1)
    return Round(text=("Proposed.",)) if results(request) else Round(calls=(PROPOSE,))


async def test_status_shows_private_channels_to_members_only_in_both_transports(
    bot: Bot,
) -> None:
    roster = bot.workspace.roster
    members = frozenset({RESPONDER, bot.workspace.app.bot_user_id})
    roster.channels[SECRET] = Channel(SECRET, "acquisition", members, kind="group")
    ask = await bot.with_session(await bot.workspace.say(MEMBER, CHECKOUT, "slow"))
    for channel in (SECRET, CHECKOUT):
        place = replace(ask.place, channel=ChannelId(channel))
        row = RunningQuestion(
            place, MessageTs(place.thread_ts), UserId(RESPONDER), datetime.now(UTC)
        )
        bot.inside.overview.running.append(row)

    told = {}
    for user in (RESPONDER, MEMBER, GUEST):
        ack = await bot.workspace.command(user, CHECKOUT, "status")
        told[user] = str((ack.body or {})["text"])
        bot.workspace.open_home(user)
    await bot.settled()

    assert f"<#{SECRET}>: a question of <@{RESPONDER}>" in told[RESPONDER]
    for user in (MEMBER, GUEST):
        assert f"<#{CHECKOUT}>: a question" in told[user]
        assert SECRET not in told[user] + json.dumps(bot.workspace.home_of(user))
        assert "acquisition" not in told[user]
        assert "1 more in places that you are not in" in told[user]
    assert "You cannot confirm proposals" in json.dumps(bot.workspace.home_of(GUEST))


async def test_status_links_to_everything_that_waits(stage: Start) -> None:
    async with stage(script) as running:
        asked = await running.ask("@kortex roll it back", RESPONDER)
        await running.answer(asked)
        card = await running.card(asked)
        waits = await running.ask("@kortex wait", MEMBER)
        await running.live(waits, "Stop")
        status = await running.private_reply(
            MEMBER, running.workspace.command(MEMBER, CHECKOUT, "status")
        )
        sessions = await running.private_reply(
            MEMBER, running.workspace.command(MEMBER, CHECKOUT, "sessions")
        )
        running.workspace.open_home(RESPONDER)
        tab = json.dumps(
            await running.workspace.wait_for(lambda: running.workspace.home_of(RESPONDER)),
            ensure_ascii=False,
        )

        site = f"https://kortex-local.slack.com/archives/{CHECKOUT}/p"
        shown = f"{site}{card.ts.replace('.', '')}?thread_ts={asked.thread}&cid={CHECKOUT}|its card"
        assert shown in status
        assert f"{site}{waits.ts.replace('.', '')}|its thread" in status
        assert f"a question of <@{MEMBER}> since" in status
        assert "Actions are not frozen." in status
        assert "1 question, the last of" in sessions
        assert "You can confirm and reject proposals in `#incident-*`." in tab
        assert shown in tab
        assert "*Today (UTC)*: $" in tab
        assert running.query("SELECT count(*) FROM audit WHERE body LIKE '%\"home\"%'") == [(1,)]
        await running.ask("stop", MEMBER, thread=waits.thread)
        await running.answer(waits)
