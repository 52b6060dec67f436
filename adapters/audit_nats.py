"""Audit rows to NATS: one CloudEvent a message, each acknowledged by a JetStream stream.

The client's half of the text protocol, a connection per batch (docs/adr/0006). Nothing runs in the
background and nothing is buffered: when `send_events` returns, the server has every row.
https://docs.nats.io/reference/reference-protocols/nats-protocol
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

import orjson
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from adapters.audit_event import EVENT_TYPE, cloud_event, event_id
from adapters.egress import check_egress, check_resolved
from adapters.errors import AdapterError, BadAnswer, Refused, TimedOut, Unreachable

SEND_TIMEOUT_S: Final = 10.0
MAX_MESSAGE_BYTES: Final = 65_536  # of one that a server sends us: its INFO, an acknowledgement
DEFAULT_PORT: Final = 4222
_HEADERS: Final = (
    "NATS/1.0\r\nContent-Type: application/cloudevents+json\r\nNats-Msg-Id: {id}\r\n\r\n"
)
_NOBODY: Final = (
    "no JetStream stream takes the subject; make one, or set events_nats_acknowledged = false"
)


@dataclass(frozen=True, slots=True)
class NatsLogin:
    """A token, or a user with a password; both empty: none is sent."""

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    def as_options(self) -> dict[str, JsonValue]:
        """What CONNECT says of them."""
        named = {"user": self.user, "pass": self.password, "auth_token": self.token}
        return {name: value for name, value in named.items() if value}


class _Info(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, defer_build=True)

    headers: bool = False
    max_payload: int = 1_048_576
    tls_required: bool = False


class AuditNats:
    """One server and subject. Without `acknowledged` a row is delivered once the server took it."""

    def __init__(
        self,
        url: str,
        subject: str = EVENT_TYPE,
        login: NatsLogin | None = None,
        *,
        acknowledged: bool = True,
    ) -> None:
        """Raises ValueError for what is no NATS address or no subject to publish to."""
        parts = urlsplit(url)
        if parts.scheme not in ("nats", "tls") or not parts.hostname or parts.username:
            raise ValueError("needs an address such as nats://nats.example:4222, without a login")
        if not subject or any(sign in subject for sign in " \t\r\n*>") or not subject.isascii():
            raise ValueError("needs a subject such as koder.admin.action")
        self._host, self._port = parts.hostname, parts.port or DEFAULT_PORT
        self._tls = parts.scheme == "tls"
        self._subject = subject
        self._login = login or NatsLogin()
        self._acknowledged = acknowledged

    async def reach(self) -> None:
        """Connect and log in, nothing else. Raises AdapterError."""
        check_egress(self._host)
        with _mapped_errors(self._host):
            async with asyncio.timeout(SEND_TIMEOUT_S), self._connected():
                pass

    async def send_events(self, rows: Sequence[Mapping[str, JsonValue]]) -> None:
        """All of them, or raises AdapterError; a stream drops what it has by `Nats-Msg-Id`."""
        check_egress(self._host)
        with _mapped_errors(self._host):
            async with asyncio.timeout(SEND_TIMEOUT_S), self._connected() as (wire, info):
                inbox = f"_INBOX.{uuid4().hex}"
                wire.send(b"SUB %s.* 1\r\n" % inbox.encode())
                for number, row in enumerate(rows):
                    wire.send(self._message(row, f"{inbox}.{number}", info))
                await wire.settled(len(rows) if self._acknowledged else 0)

    def _message(self, row: Mapping[str, JsonValue], reply: str, info: _Info) -> bytes:
        head = _HEADERS.format(id=event_id(row)).encode()
        size = len(head) + len(body := orjson.dumps(cloud_event(row)))
        if size > info.max_payload:
            raise BadAnswer(f"row {row['seq']} is larger than the server's max_payload")
        to = f"{self._subject} {reply}" if self._acknowledged else self._subject
        return f"HPUB {to} {len(head)} {size}\r\n".encode() + head + body + b"\r\n"

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple["_Wire", _Info]]:
        reader, writer = await self._dialled()
        try:
            verb, _, told = (await reader.readuntil(b"\r\n")).partition(b" ")
            info = _Info.model_validate_json(told)
            if verb != b"INFO" or not info.headers:
                raise BadAnswer("it is no NATS server of 2.2 or newer")
            if self._tls or info.tls_required:
                await writer.start_tls(ssl.create_default_context(), server_hostname=self._host)
            options = {"verbose": False, "pedantic": False, "name": "kortex", "lang": "python",
                       "version": "1", "headers": True, "no_responders": True, "echo": False,
                       "tls_required": self._tls, **self._login.as_options()}  # fmt: skip
            wire = _Wire(reader, writer)
            wire.send(b"CONNECT " + orjson.dumps(options) + b"\r\n")
            await wire.settled(0)
            yield wire, info
        finally:
            writer.close()
            with suppress(OSError, TimeoutError):
                await writer.wait_closed()

    async def _dialled(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to an address that was looked up once and checked."""
        found = await asyncio.get_running_loop().getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM
        )
        addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
        for address in addresses:
            check_resolved(self._host, address)
        for address in addresses[:-1]:
            with suppress(OSError):
                return await asyncio.open_connection(address, self._port, limit=MAX_MESSAGE_BYTES)
        return await asyncio.open_connection(addresses[-1], self._port, limit=MAX_MESSAGE_BYTES)


@dataclass(frozen=True, slots=True)
class _Wire:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, data: bytes) -> None:
        """Into the socket's buffer; `settled` waits until it is gone."""
        self.writer.write(data)

    async def settled(self, acknowledgements: int) -> None:
        """Until the server has read all of it, and so many rows are stored."""
        self.send(b"PING\r\n")
        await self.writer.drain()
        pong = False
        while not pong or acknowledgements > 0:
            verb, _, rest = (await self.reader.readuntil(b"\r\n")).rstrip().partition(b" ")
            match verb.upper():
                case b"PONG":
                    pong = True
                case b"PING":
                    self.send(b"PONG\r\n")
                case b"MSG" | b"HMSG":
                    _check_stored(verb.upper(), await self._payload(rest))
                    acknowledgements -= 1
                case b"-ERR":
                    raise _refusal(rest.decode(errors="replace").strip("'"))
                case b"INFO" | b"+OK":
                    pass
                case _:
                    raise BadAnswer("it does not speak NATS")

    async def _payload(self, arguments: bytes) -> bytes:
        size = int(arguments.rsplit(b" ", 1)[-1])
        if size > MAX_MESSAGE_BYTES:
            raise BadAnswer("its acknowledgement is too large")
        return (await self.reader.readexactly(size + 2))[:size]


def _check_stored(verb: bytes, payload: bytes) -> None:
    """A stream's acknowledgement of one row, or why there is none."""
    if verb == b"HMSG":
        raise BadAnswer(_NOBODY if payload.startswith(b"NATS/1.0 503") else "it took no row")
    said = orjson.loads(payload)
    if not isinstance(said, dict) or "stream" not in said or "error" in said:
        raise BadAnswer(f"the stream took no row: {payload[:200].decode(errors='replace')}")


def _refusal(words: str) -> AdapterError:
    if "authorization" in words.lower() or "permissions" in words.lower():
        return Refused(f"the NATS server refused it: {words}")
    return BadAnswer(f"the NATS server said: {words}")


@contextmanager
def _mapped_errors(host: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise TimedOut(f"{host} took no rows within {SEND_TIMEOUT_S:.0f} s") from error
    except (OSError, asyncio.IncompleteReadError) as error:
        raise Unreachable(f"{host}: {type(error).__name__}") from error
    except (asyncio.LimitOverrunError, ValidationError, ValueError) as error:
        raise BadAnswer(f"{host} does not speak NATS") from error
