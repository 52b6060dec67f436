"""A socket outage is logged once, again after minutes, and at its end."""

import logging

from structlog.testing import capture_logs

from bot.slack.ingress.socket_mode import Outage

TRY = (
    "Failed to check the current session (s_%d) or reconnect to the server (error: "
    "ClientConnectorError, message: Cannot connect to host 127.0.0.1:8420)"
)
BROKEN = "Failed to receive or enqueue a message: ClientConnectorError (s_1)"
WHY = TRY.replace(" (s_%d)", "")


def record(words: str) -> logging.LogRecord:
    return logging.LogRecord("kortex.slack_libraries", logging.ERROR, "", 0, words, None, None)


def test_a_two_minute_outage_is_logged_in_two_lines_and_one_at_its_end() -> None:
    now = [0.0]
    outage = Outage(lambda: now[0])

    with capture_logs() as lines:
        written = [outage.filter(record(BROKEN))]
        for number in range(12):
            now[0] += 10
            written.append(outage.filter(record(TRY % number)))
        outage.over()
        outage.over()

    assert written == [False] * 13
    assert lines == [
        {
            "event": "slack.socket.disconnected", "log_level": "warning", "away_s": 0, "tries": 1,
            "why": "Failed to receive or enqueue a message: ClientConnectorError",
        },
        {"event": "slack.socket.disconnected", "log_level": "warning", "away_s": 10, "tries": 2, "why": WHY},
        {"event": "slack.socket.reconnected", "log_level": "info", "away_s": 120, "tries": 13},
    ]  # fmt: skip


def test_a_long_outage_and_the_next_one_are_logged_again() -> None:
    now = [0.0]
    outage = Outage(lambda: now[0])

    with capture_logs() as lines:
        for _ in range(61):
            outage.filter(record(TRY % 1))
            now[0] += 10
        outage.over()
        outage.filter(record(TRY % 2))

    told = [(line["event"], line["away_s"]) for line in lines]
    assert told == [
        ("slack.socket.disconnected", 0),
        ("slack.socket.disconnected", 300),
        ("slack.socket.disconnected", 600),
        ("slack.socket.reconnected", 610),
        ("slack.socket.disconnected", 0),
    ]


def test_other_library_messages_are_logged() -> None:
    assert Outage().filter(record("something else broke"))
