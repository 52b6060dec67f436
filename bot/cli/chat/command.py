"""`kortex chat` at the process's own terminal or pipe: address and token, lines in, Ctrl-C, exit codes."""

import asyncio
import signal
import stat
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from adapters.errors import AdapterError, Unreachable
from adapters.http.client import http_client
from bot.cli.chat.client import READ_S, ChatClient, ChatFailed
from bot.cli.chat.conversation import TerminalConversation
from bot.cli.chat.screen import Screen
from bot.cli.exit_codes import FAILED, INTERRUPTED, OK, USAGE
from bot.settings.environment import environment
from tools.output import lines_of

USUAL_URL: Final = "http://127.0.0.1:3000"
URL_VARIABLE: Final = "KORTEX_URL"
TOKEN_VARIABLE: Final = "KORTEX_TOKEN"  # noqa: S105 - a name
USUAL_FILE: Final = "~/.config/kortex/token"
_MOST_CHARS: Final = 16_384  # a token of an identity provider with many groups
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class Unusable(Exception):
    """The address or the token cannot be used; the message says what to do."""


def where(
    url: str | None, config: Path, env: Mapping[str, str], tell: Callable[[str], None]
) -> str:
    """The service's address: the option, else the variable, else `[http]` of the file, else the default.

    Calls `tell` with a line where the file gives no address. Raises Unusable.
    """
    if url is not None:
        return address(url)
    if told := env.get(URL_VARIABLE, "").strip():
        return address(told, URL_VARIABLE)
    if not config.is_file():
        return USUAL_URL
    from bot.settings.http import own_address  # only where there is a file: they take a moment
    from bot.settings.reading import ConfigurationError, load

    try:
        http = load(config, env).http
    except ConfigurationError as error:
        first, *_ = lines_of(str(error))
        tell(f"{first}; asking {USUAL_URL}")
        return USUAL_URL
    if not http.port:
        tell(f"{config}: [http] port = 0 changes at each start; asking {USUAL_URL}")
        return USUAL_URL
    return address(own_address(http), f"[http] of {config}; name another with --url")


def address(url: str, source: str = "--url") -> str:
    """Raises Unusable, naming the `source`: a token goes over the network in TLS only."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise Unusable(f"{source}: not an address: {error}") from error
    if not host or parts.scheme not in {"http", "https"} or parts.username is not None:
        raise Unusable(f"{source}: write the service's address, such as {USUAL_URL}")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise Unusable(f"{source}: use https; over http your token could be read on the network")
    return url.rstrip("/")


def token(file: Path | None, env: Mapping[str, str]) -> str:
    """From the file that was named, the variable, or the usual file. Raises Unusable."""
    if file is None and (told := env.get(TOKEN_VARIABLE, "").strip()):
        return _checked(told, TOKEN_VARIABLE)
    path = file or Path(USUAL_FILE).expanduser()
    try:
        mode = path.stat().st_mode
        told = path.read_text("utf-8", "replace").strip()
    except OSError as error:
        if file is None:
            raise Unusable(
                f"no token: set {TOKEN_VARIABLE}, or write it into {USUAL_FILE} "
                "(an admin makes one: kortex token create NAME)"
            ) from error
        raise Unusable(f"{path}: cannot be read ({error.strerror})") from error
    if stat.S_IMODE(mode) & 0o077:
        raise Unusable(f"{path}: other users can read it; chmod 600 {path}")
    return _checked(told, str(path))


def _checked(told: str, where: str) -> str:
    if not told or len(told) > _MOST_CHARS or not (told.isascii() and told.isprintable()):
        raise Unusable(f"{where}: holds no token")
    return told


@click.command()
@click.option(
    "--url",
    help="The address of the service (default: KORTEX_URL, else [http] of the configuration, else "
    "http://127.0.0.1:3000).",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A file that holds the token.",
)
@click.option(
    "--channel",
    default="incident-console",
    metavar="NAME",
    show_default=True,
    help="The channel, which sets permissions.",
)
@click.option("--session", default="", metavar="ID", help="Continue one of your conversations.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    default=Path("kortex.toml"),
    metavar="PATH",
    help="The service's configuration, if it is on this machine (default: ./kortex.toml).",
)
def chat(url: str | None, config: Path, token_file: Path | None, channel: str, session: str) -> int:
    """Talk with a running Kortex in this terminal, over its HTTP API.

    The token says who you are. `kortex token create NAME` makes one, where the service runs. It is
    read from KORTEX_TOKEN or from ~/.config/kortex/token, which only you may read. Lines of a pipe
    are asked one after the other.

    Exit 1: a question got no answer. Exit 2: the address or the token cannot be used.
    """
    try:
        found = where(url, config, environment(), _tell)
        shown = token(token_file, environment())
    except Unusable as error:
        _tell(str(error))
        return USAGE
    return asyncio.run(_chat(found, shown, channel, session))


async def _chat(url: str, shown: str, channel: str, session: str) -> int:
    typed = sys.stdin.isatty()
    colour = sys.stdout.isatty() and "NO_COLOR" not in environment()
    screen = Screen(_write, colour=colour)
    headers = {"Authorization": f"Bearer {shown}"}
    client = http_client(base_url=url, headers=headers, read_s=READ_S, streams=True)
    talk = TerminalConversation(
        ChatClient(client), screen, _Lines(typed=typed).read, channel, session
    )
    try:
        me = await talk.client.me()
        if typed:
            roles = ", ".join(me.roles) or "no role"
            screen.note(f"You are {me.name} ({roles}). /help lists the commands.")
        return await _until_left(talk)
    except Unreachable as error:
        _tell(f"{error}. Start it with `kortex run`, or name its address with --url")
        return FAILED
    except (ChatFailed, AdapterError) as error:
        _tell(str(error))
        return FAILED
    finally:
        await client.aclose()


async def _until_left(talk: TerminalConversation) -> int:
    left = asyncio.Event()
    pressed = 0

    async def interrupted() -> None:
        if not await talk.interrupt():
            left.set()

    async with asyncio.TaskGroup() as group:

        def on_interrupt() -> None:
            nonlocal pressed
            pressed += 1
            if pressed > 1:
                left.set()
            else:
                group.create_task(interrupted())

        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, on_interrupt)
        running = group.create_task(talk.run())
        leaving = group.create_task(left.wait())
        await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
        for each in (running, leaving):
            each.cancel()
    if left.is_set():
        return INTERRUPTED
    return FAILED if talk.failed else OK


class _Lines:
    """Lines of standard input, read in a thread that ends with the process: no read of it can be ended."""

    def __init__(self, *, typed: bool) -> None:
        self._typed = typed

    async def read(self, prompt: str) -> str | None:
        """The next line, None at the end. The prompt is shown to people alone."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[str | None] = loop.create_future()

        def tell(line: str | None) -> None:
            if not found.done():
                found.set_result(line)

        def wait() -> None:
            line = self._line(prompt)
            loop.call_soon_threadsafe(tell, line)

        threading.Thread(target=wait, daemon=True).start()
        return await found

    def _line(self, prompt: str) -> str | None:
        if self._typed:
            import readline  # noqa: F401 - gives `input` its editing and its history
        try:
            return input(prompt) if self._typed else (sys.stdin.readline() or None)
        except (EOFError, UnicodeDecodeError):
            return None


def _tell(line: str) -> None:
    print(f"kortex: {line}", file=sys.stderr)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
