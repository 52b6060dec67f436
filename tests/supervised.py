"""Toy workers under a real supervisor: `python -m tests.supervised COUNT FOLDER PLAN POLICY`.

The plan says what each start does, in order, the last of it from then on: `serve` until it is
stopped, `exit:CODE` before it serves, `fall:CODE` right after, `deaf` to stops, `dies` of a reload,
`gated` finishes a reload once the file `go` is there. `crowded` alone is a machine that has no room
for any of them. Lines on standard output say what happens.
"""

import os
import resource
import signal
import sys
import time
from pathlib import Path

import orjson

from bot.upkeep.signals import Signals, heeding
from bot.upkeep.supervisor import Link, RestartPolicy, Supervisor

LONG_S = 60.0
_NOBODY = 65534


def say(*words: object) -> None:
    """One whole line, also beside other writers."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def _what(folder: Path, plan: list[str]) -> str:
    """What the plan has for this start."""
    for number in range(1_000):
        try:
            (folder / str(number)).touch(exist_ok=False)
        except FileExistsError:
            continue
        return plan[min(number, len(plan) - 1)]
    raise AssertionError("so often nobody is started")


def _work(signals: Signals) -> int:
    link = Link(int(sys.argv[-1]))
    number, folder, plan, held = link.parameters()
    link.watch()
    what, go = _what(Path(folder), plan.split()), Path(folder, "go")
    kind, _, code = what.partition(":")
    if kind == "exit":
        return int(code)
    if kind == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def reload() -> None:
        if signals.take_reload():
            if kind == "dies":
                say("dies")
                os.kill(os.getpid(), signal.SIGKILL)
            while kind == "gated" and not go.exists():
                time.sleep(0.01)
            say("reload", number)
            link.report(held + 1)

    link.report()
    say("serves", number, os.getpid(), held)
    signals.tell(reload)
    reload()
    if kind == "fall":
        return int(code)
    until = time.monotonic() + LONG_S
    while not signals.stop_asked and time.monotonic() < until:
        time.sleep(0.01)
    say("stopped", number)
    return 0


def _crowded() -> None:
    """No further process for this user; root has no such limit."""
    if os.getuid() == 0:
        os.setuid(_NOBODY)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def _supervise(signals: Signals, count: str, folder: str, plan: str, policy: str) -> int:
    held = 0
    if plan == "crowded":
        _crowded()

    def reloaded(state: int) -> None:
        nonlocal held
        held = state
        say("reloaded", state)

    return Supervisor(
        int(count),
        (sys.executable, "-m", "tests.supervised", "worker"),
        os.environ,
        lambda number: (number, folder, plan, held),
        signals,
        on_ready=lambda: say("ready"),
        on_stop=lambda: say("stopping"),
        on_reload=reloaded,
        policy=RestartPolicy(**orjson.loads(policy)),
    ).run()


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        sys.exit(heeding(Signals(), _work))
    sys.exit(heeding(Signals(), lambda signals: _supervise(signals, *sys.argv[1:])))
