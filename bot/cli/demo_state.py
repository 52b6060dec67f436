"""The folders of `kortex demo`: its database and audit key, and how other commands read them.

Each folder has mode 0700 and belongs to the user who runs the demo. It is in the user's state folder,
or in the temporary folder where the home cannot be written. A demo leaves its folder behind, so that
its audit log can be verified afterwards. The next demo removes the folders of demos that ended.
"""

import json
import os
import re
import shutil
import sqlite3
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from bot.cli.exit_codes import USAGE
from bot.engine.config import SecondProcess, take_lock
from bot.settings.environment import environment
from bot.settings.reading import ConfigurationError

CONFIG, DATABASE = "kortex.toml", "kortex.db"
DIRECTORY = "${KORTEX_DEMO_DIRECTORY}"  # as demo.toml has it: the copy has a folder of its own
_RUNNING = "demo"  # locked while a demo runs; the kernel releases it after a kill as well
_NAME = re.compile(r"[0-9]{20}-[0-9]+")  # when it began (ns), and the process: sorts by age


@contextmanager
def kept() -> Iterator[Path]:
    """The folder of a demo that starts; those of demos that ended are removed.

    Raises ConfigurationError when no private folder can be made.
    """
    home = _made()
    for ended in [each for place in _places() for each in _demos(place) if not _runs(each)]:
        shutil.rmtree(ended, ignore_errors=True)
    # Locked before it has its name, so that a parallel demo does not treat it as ended.
    begun = Path(tempfile.mkdtemp(prefix="starting-", dir=home))
    with take_lock(begun / _RUNNING):
        yield begun.rename(home / f"{time.time_ns():020d}-{os.getpid()}")


def on_demo(command: Callable[[Path], int]) -> int:
    """Run a command with the configuration of the newest demo; exit 2 without a demo.

    The command works on a copy of the database, so it cannot change the demo.
    """
    try:
        with _copied() as config:
            return command(config)
    except ConfigurationError as error:
        print(f"kortex: {error}", file=sys.stderr)
        return USAGE


@contextmanager
def _copied() -> Iterator[Path]:
    found = [
        each
        for place in _places()
        for each in _demos(place)
        if (each / CONFIG).is_file() and (each / DATABASE).is_file()
    ]
    if not found:
        raise ConfigurationError(
            "there is no demo yet. Start `kortex demo`, ask there, and try again."
        )
    demo = max(found, key=lambda each: each.name)
    with tempfile.TemporaryDirectory(prefix="kortex-") as folder:
        config = Path(folder, CONFIG)
        try:
            _copy(demo / DATABASE, Path(folder, DATABASE))
            text = (demo / CONFIG).read_text(encoding="utf-8")
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(f"the demo in {demo} cannot be read: {error}") from error
        if not _runs(demo):  # not running, so its names and links are unavailable
            text = re.sub(r"(?m)^bot_token = .*$", 'bot_token = ""', text, count=1)
        config.write_text(text.replace(DIRECTORY, json.dumps(folder)[1:-1]), encoding="utf-8")
        yield config


def _copy(source: Path, target: Path) -> None:
    with (
        closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as reading,
        closing(sqlite3.connect(target)) as writing,
    ):
        reading.backup(writing)


def _candidates() -> Sequence[Path]:
    """The best first. XDG's base directories: a relative XDG_STATE_HOME is to be ignored."""
    below_tmp = Path(tempfile.gettempdir(), f"kortex-demo-{os.geteuid()}")
    state = Path(environment().get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        try:
            state = Path.home() / ".local" / "state"
        except RuntimeError:  # a user without a home, as in a container
            return [below_tmp]
    return [state / "kortex" / "demo", below_tmp]


def _places() -> Sequence[Path]:
    return [each for each in _candidates() if _is_private(each)]


def _made() -> Path:
    for each in _candidates():
        try:
            each.parent.mkdir(parents=True, exist_ok=True)
            each.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            continue
        if _is_private(each) and os.access(each, os.W_OK | os.X_OK):
            return each
    tried = " and ".join(str(each) for each in _candidates())
    raise ConfigurationError(
        f"the demo has no private folder for its data: {tried} cannot be written, or other users "
        "can read them. Set XDG_STATE_HOME to your own folder."
    )


def _is_private(folder: Path) -> bool:
    """A folder, not a link, that only this user can open. Any user can create names below /tmp."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.geteuid()
        and not stat.S_IMODE(found.st_mode) & 0o077
    )


def _demos(place: Path) -> Sequence[Path]:
    return [each for each in place.iterdir() if _NAME.fullmatch(each.name)]


def _runs(demo: Path) -> bool:
    try:
        take_lock(demo / _RUNNING).close()
    except SecondProcess:
        return True
    except OSError:  # removed in the meantime
        return False
    return False
