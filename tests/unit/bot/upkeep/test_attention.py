"""What a loop does about signals, in every phase of a process that serves."""

import asyncio
import signal
import subprocess
import sys

import pytest

from bot.upkeep.attention import Attention, StoppedEarly
from bot.upkeep.signals import Signals

LIFE = """
import asyncio, atexit, os, signal
from bot.upkeep.signals import Signals

def all_three():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(os.getpid(), number)

signals = Signals()
signals.take()
all_three()
from bot.upkeep.attention import Attention

async def serve():
    attention = Attention(signals)
    with attention.paid():
        all_three()
        await attention.stop.wait()
        await asyncio.sleep(0)
        all_three()
    all_three()

asyncio.run(serve())
all_three()
signals.ignore()
atexit.register(all_three)
print("lived", flush=True)
"""


def test_no_signal_kills_from_the_first_statement_to_the_interpreters_end() -> None:
    lived = subprocess.run(
        [sys.executable, "-c", LIFE], capture_output=True, text=True, timeout=30, check=False
    )
    assert lived.returncode == 0, lived.stderr
    assert lived.stdout.endswith("lived\n")


def _arrives(signals: Signals, *numbers: signal.Signals) -> None:
    for number in numbers:
        signals._on(number, None)


async def test_a_signal_before_the_loop_is_not_lost() -> None:
    signals = Signals()
    _arrives(signals, signal.SIGHUP, signal.SIGTERM)
    attention = Attention(signals)
    with attention.paid(), pytest.raises(StoppedEarly), attention.starting():
        pytest.fail("it started")


async def test_a_stop_during_the_start_closes_what_was_opened() -> None:
    signals, begun, closed = Signals(), asyncio.Event(), asyncio.Event()
    attention = Attention(signals)

    async def start() -> None:
        with attention.starting():
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)  # the cleaning awaits, and is not cancelled again
                closed.set()

    with attention.paid():
        starting = asyncio.create_task(start())
        await begun.wait()
        _arrives(signals, signal.SIGTERM, signal.SIGTERM)
        with pytest.raises(StoppedEarly):
            await starting
    assert closed.is_set()


async def test_an_unrelated_cancellation_is_not_a_stop() -> None:
    attention, begun = Attention(Signals()), asyncio.Event()

    async def start() -> None:
        with attention.starting():
            begun.set()
            await asyncio.Event().wait()

    with attention.paid():
        starting = asyncio.create_task(start())
        await begun.wait()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting


async def test_a_stop_after_the_start_cancels_nothing() -> None:
    signals = Signals()
    attention = Attention(signals)
    with attention.paid():
        with attention.starting():
            await asyncio.sleep(0)
        _arrives(signals, signal.SIGINT)
        await attention.stop.wait()
    assert not attention.reload.is_set()


async def test_a_hangup_reloads_while_serving_and_not_while_stopping() -> None:
    signals = Signals()
    attention = Attention(signals)
    with attention.paid():
        _arrives(signals, signal.SIGHUP)
        await attention.reload.wait()
        attention.reload.clear()
        _arrives(signals, signal.SIGTERM, signal.SIGHUP)
        await attention.stop.wait()
        await asyncio.sleep(0)
        assert not attention.reload.is_set()


async def test_a_closed_terminal_stops_its_process() -> None:
    signals = Signals(hangup_stops=True)
    attention = Attention(signals)
    with attention.paid():
        _arrives(signals, signal.SIGHUP)
        await attention.stop.wait()
    assert not attention.reload.is_set()
