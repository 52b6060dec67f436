"""Toy workers under a real supervisor: `python -m tests.supervised COUNT FOLDER PLAN PATIENCE`.

The plan says what each start does, in order, the last of it from then on: `serve` until it is
stopped, `exit:CODE` before it serves, `fall:CODE` right after, `deaf` to stops, `dies` of a reload,
`gated` takes a reload once the file `go` is there. `crowded` alone is a
machine that has no room for any of them. Lines on standard output say what happens.
"""

import os
import resource
import signal
import sys
import time
from pathlib import Path

import orjson

from bot.upkeep.signals import Signals, heeding
from bot.upkeep.supervisor import Patience, Supervisor, Worker

LONG_S = 60.0
_NOBODY = 65534


def say(*words: object) -> None:
    """One line, whole, whoever else writes."""
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


def _work(worker: Worker, signals: Signals, what: str, go: Path) -> int:
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
            say("reload", worker.number)
            worker.reloaded()

    signals.tell(reload)
    worker.serves()
    say("serves", worker.number, os.getpid())
    if kind == "fall":
        return int(code)
    until = time.monotonic() + LONG_S
    while not signals.stop_asked and time.monotonic() < until:
        time.sleep(0.01)
    say("stopped", worker.number)
    return 0


def _crowded() -> None:
    """No further process for whoever we are; root has no such limit."""
    if os.getuid() == 0:
        os.setuid(_NOBODY)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def _main(count: str, folder: str, plan: str, patience: str) -> int:
    def serve(signals: Signals) -> int:
        if plan == "crowded":
            _crowded()
        supervisor = Supervisor(
            int(count),
            signals,
            lambda: say("ready"),
            lambda: say("stopping"),
            Patience(**orjson.loads(patience)),
            reloading=lambda: say("asked"),
            reloaded=lambda: say("taken"),
        )
        found = supervisor.run()
        if isinstance(found, int):
            return found
        return _work(found, signals, _what(Path(folder), plan.split()), Path(folder, "go"))

    return heeding(Signals(), serve)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
