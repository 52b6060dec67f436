"""A thread read from Slack: in pages, within limits, and unreadable parts are reported."""

from typing import Any

import pytest

from bot.domain.ids import ChannelId, MessageTs, Place, TeamId
from bot.domain.thread import Speaker
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.users import PersonNames
from bot.slack.api.web_api import RateLimited
from bot.slack.views.threads import AN_APP, CUT, LIMITED, SOMEBODY, UNREADABLE, SlackThreads
from tests.fakes.slack_web_api import Arguments, FakeWebApi

PLACE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("100.000001"))
LAST = MessageTs("999.000000")


def message(n: int, **fields: Any) -> dict[str, Any]:
    return {"ts": f"{100 + n}.000001", "user": "U0ANNA", "text": f"line {n}", **fields}


def thread(*pages: list[dict[str, Any]]) -> FakeWebApi:
    """Slack with those pages, and Anna."""
    api = FakeWebApi()

    def page(arguments: Arguments) -> dict[str, Any]:
        at = int(str(arguments["cursor"] or 0))
        cursor = str(at + 1) if at + 1 < len(pages) else ""
        return {"messages": pages[at], "response_metadata": {"next_cursor": cursor}}

    api.answers["conversations.replies"] = page
    api.answers["conversations.history"] = page
    api.answers["users.info"] = {"user": {"id": "U0ANNA", "name": "anna"}}
    return api


def reader(api: FakeWebApi, held: list[RateLimited] | None = None) -> SlackThreads:
    async def at_once() -> None:
        """No allowance."""

    names = PersonNames(api, lambda: 0.0)
    limited = (held if held is not None else []).append
    return SlackThreads(api, names, "UBOT", "https://acme.slack.com/", at_once, limited)


async def test_every_page_is_read_and_each_message_has_its_link() -> None:
    pages = [message(n) for n in range(200)], [message(n) for n in range(200, 230)]
    read = await reader(thread(*pages)).read(PLACE, LAST, 500)

    assert read.missing == ""
    assert [said.text for said in read.messages] == [f"line {n}" for n in range(230)]
    assert read.messages[0].link == "https://acme.slack.com/archives/C1/p100000001"
    reply = "https://acme.slack.com/archives/C1/p101000001?thread_ts=100.000001&cid=C1"
    assert read.messages[1].link == reply


async def test_a_thread_over_the_limit_says_so() -> None:
    pages = [[message(n) for n in range(200)]] * 4
    read = await reader(thread(*pages)).read(PLACE, LAST, 500)
    assert (len(read.messages), read.missing) == (500, CUT.format(count=500))


async def test_a_low_read_limit_asks_once_and_says_so() -> None:
    api = thread([message(n) for n in range(15)], [message(n) for n in range(15, 30)])
    read = await reader(api).read(PLACE, LAST, 500)

    assert (len(read.messages), read.missing) == (15, LIMITED)
    assert api.count("conversations.replies") == 1


@pytest.mark.parametrize(
    "error",
    [
        RateLimited("conversations.replies", 60.0),
        SurfaceGone("channel_not_found"),
        SurfaceFailed("missing_scope", retryable=False),
    ],
)
async def test_a_refusal_is_reported_and_not_raised(error: Exception) -> None:
    api = thread([message(1)])
    api.answers["conversations.replies"] = error
    read = await reader(api).read(PLACE, LAST, 500)
    assert read.messages == []
    assert "Slack did not give me the messages" in read.missing


async def test_a_short_rate_limit_is_waited_for_once_and_reported_to_the_pacer() -> None:
    answers: list[Any] = [RateLimited("conversations.replies", 2.0), {"messages": [message(1)]}]
    held: list[RateLimited] = []
    api = thread()

    def next_one(_: Arguments) -> dict[str, Any]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer)

    api.answers["conversations.replies"] = next_one
    read = await reader(api, held).read(PLACE, LAST, 500)

    assert [said.text for said in read.messages] == ["line 1"]
    assert (read.missing, len(held)) == ("", 1)


async def test_authors_are_recognised_and_non_messages_skipped() -> None:
    own = {"user": "UBOT", "bot_id": "B1"}
    api = thread(
        [
            message(1, text="<@UBOT> why?"),
            message(2, **own, metadata={"event_type": "kortex_answer"}),
            message(3, **own, metadata={"event_type": "kortex_card"}),
            message(4, **own),
            message(5, user="", bot_id="B2", username="Pager"),
            message(6, user="", bot_id="B3"),
            message(7, subtype="channel_join"),
            message(8, hidden=True, subtype="tombstone"),
            message(9, ts="not a time"),
            message(900),
        ]
    )
    read = await reader(api).read(PLACE, LAST, 500)

    assert [(said.speaker, said.name) for said in read.messages] == [
        (Speaker.PERSON, "anna"),
        (Speaker.ANSWER, "Kortex"),
        (Speaker.CARD, "Kortex"),
        (Speaker.NOTE, "Kortex"),
        (Speaker.APP, "Pager"),
        (Speaker.APP, AN_APP),
    ]
    assert [said.to_bot for said in read.messages[:2]] == [True, False]


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("<@U0ANNA> look", "@anna look"),
        ("<@U0ANNA|old name> look", "@anna look"),
        ("see <#C9|ops> and <#C8>", "see #ops and a channel"),
        ("<!here> <!subteam^S1|@sre> <!subteam^S2>", "@here @sre @subteam"),
        (
            "<https://a.test/x|the page> <https://a.test>",
            "the page (https://a.test/x) https://a.test",
        ),
        ("a &lt;b&gt; &amp;amp; c", "a <b> & c"),
        ("\u202ereversed\x1b[31m", "\\u202ereversed"),
    ],
)
async def test_text_is_plain_and_mentions_no_one(sent: str, read: str) -> None:
    found = await reader(thread([message(1, text=sent)])).read(PLACE, LAST, 500)
    assert found.messages[0].text == read


async def test_an_unknown_name_is_not_shown_as_an_id() -> None:
    api = thread([message(1, text="<@U0BEN> look")])
    api.answers["users.info"] = SurfaceFailed("user_not_found", retryable=False)
    (said,) = (await reader(api).read(PLACE, LAST, 500)).messages
    assert (said.name, said.text) == (SOMEBODY, f"@{SOMEBODY} look")


async def test_a_direct_message_is_read_from_its_end_and_shown_from_its_beginning() -> None:
    direct = Place(TeamId("T1"), ChannelId("D1"), MessageTs(""))
    pages = [message(n) for n in range(400, 200, -1)], [message(1)]
    read = await reader(thread(*pages)).read(direct, MessageTs("9999.0"), 100)
    assert (read.messages[0].text, len(read.messages)) == ("line 301", 100)
    assert read.messages[-1].text == "line 400"


@pytest.mark.parametrize("ts", ["", "x", "1.1)](https://evil.test", "1"])
def test_only_a_messages_id_becomes_a_link(ts: str) -> None:
    assert reader(FakeWebApi()).link(PLACE, MessageTs(ts)) == ""


ALERTMANAGER: dict[str, Any] = {
    "subtype": "bot_message",
    "bot_id": "B0HOOK",
    "username": "Alertmanager",
    "user": None,
    "text": "",
}


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (
            {
                "attachments": [
                    {"fallback": "f", "title": "HighLatency (critical)", "text": "p99 2 s"}
                ]
            },
            "HighLatency (critical)\np99 2 s",
        ),
        ({"attachments": [{"fallback": "HighLatency checkout"}]}, "HighLatency checkout"),
        (
            {"attachments": [{"fields": [{"title": "job", "value": "checkout"}, None, 7]}]},
            "job: checkout",
        ),
        (
            {
                "blocks": [
                    {"type": "header", "text": {"type": "plain_text", "text": "Firing"}},
                    {"type": "section", "fields": [{"type": "mrkdwn", "text": "*job* checkout"}]},
                    {"type": "context", "elements": [{"type": "mrkdwn", "text": "since 14:02"}]},
                ]
            },
            "Firing\n*job* checkout\nsince 14:02",
        ),
        (
            {
                "blocks": [
                    {
                        "type": "rich_text",
                        "elements": [
                            {
                                "type": "rich_text_section",
                                "elements": [
                                    {"type": "text", "text": "see "},
                                    {"type": "link", "url": "https://x.test"},
                                    {"type": "user", "user_id": "U0ANNA"},
                                ],
                            }
                        ],
                    }
                ]
            },
            "see https://x.test@anna",
        ),
        (
            {
                "blocks": [
                    {
                        "type": "table",
                        "rows": [
                            [
                                {"type": "raw_text", "text": "pod"},
                                {"type": "raw_text", "text": "state"},
                            ],
                            [
                                {"type": "raw_text", "text": "checkout-1 <a>"},
                                {
                                    "type": "rich_text",
                                    "elements": [
                                        {
                                            "type": "rich_text_section",
                                            "elements": [{"type": "text", "text": "OOM"}],
                                        }
                                    ],
                                },
                            ],
                            None,
                            [7, None],
                        ],
                    }
                ]
            },
            "pod | state\ncheckout-1 <a> | OOM",
        ),
        (
            {
                "text": "Firing",
                "blocks": [
                    {"type": "header", "text": {"type": "plain_text", "text": "Firing"}},
                    {"type": "section", "text": {"type": "mrkdwn", "text": "p99 of checkout 2 s"}},
                    {
                        "type": "rich_text",
                        "elements": [
                            {
                                "type": "rich_text_section",
                                "elements": [{"type": "text", "text": "in text already"}],
                            }
                        ],
                    },
                ],
            },
            "Firing\np99 of checkout 2 s",
        ),
        (
            {
                "text": "\u200b",
                "blocks": [{"type": "markdown", "text": "**checkout** is slow"}],
            },
            "**checkout** is slow",
        ),
        ({"attachments": [{"fields": [{"title": "p95", "value": 2.5}]}]}, "p95: 2.5"),
        ({"text": None, "attachments": None, "blocks": None}, ""),
        ({"attachments": [None, "x", {"blocks": [3]}], "blocks": "no"}, ""),
    ],
)
async def test_text_in_attachments_and_blocks_is_read(where: dict[str, Any], words: str) -> None:
    read = await reader(thread([message(1, **ALERTMANAGER | where)])).read(PLACE, LAST, 500)
    assert [(said.speaker, said.name, said.text) for said in read.messages] == [
        (Speaker.APP, "Alertmanager", words)
    ]


@pytest.mark.parametrize("odd", [None, 7, "x", {}, {"ts": None}, {"ts": "1.2", "text": ["x"]}])
async def test_one_odd_message_does_not_hide_the_thread(odd: object) -> None:
    page: list[Any] = [message(1), odd, message(2)]
    read = await reader(thread(page)).read(PLACE, LAST, 500)
    assert [said.text for said in read.messages] == ["line 1", "line 2"]
    assert read.missing == UNREADABLE.format(count=1)


@pytest.mark.parametrize("field", ["user", "text", "subtype", "username", "bot_profile", "hidden"])
async def test_a_null_field_counts_as_absent(field: str) -> None:
    read = await reader(thread([message(1, **{field: None})])).read(PLACE, LAST, 500)
    assert (len(read.messages), read.missing) == (1, "")
