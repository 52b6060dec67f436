"""Publishes audit rows to NATS JetStream, with nats-py (the extra `kortex[nats]`).

One connection per batch: each address passes the egress guard before it is dialled, and Kortex
never follows addresses that a server announces. The audit log is the queue, so the client neither
reconnects nor buffers; the next batch does (docs/adr/0006).
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import nats.errors
import orjson
from nats.aio.client import Client
from nats.js.errors import APIError, NoStreamResponseError
from pydantic import JsonValue

from adapters.audit.event import EVENT_TYPE, cloud_event, event_id
from adapters.errors import AdapterError, BadAnswer, Refused, TimedOut, Unreachable
from adapters.http.egress import check_egress, check_resolved

SEND_TIMEOUT_S: Final = 10.0
CLOSE_TIMEOUT_S: Final = 0.1  # the rows are acknowledged by then, or the batch has failed
# A socket's buffer holds them. asyncio keeps a closed connection until its buffer is sent, so more
# could not be dropped when a server reads nothing.
ROWS_IN_FLIGHT: Final = 20
DEFAULT_PORT: Final = 4222
CONTENT_TYPE: Final = "application/cloudevents+json"
_NO_STREAM: Final = (
    "no JetStream stream takes the subject; make one, or set events_nats_acknowledged = false"
)


@dataclass(frozen=True, slots=True)
class NatsLogin:
    """A token, or a user with a password. Empty fields are not sent."""

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


class AuditNats:
    """One server and subject. Without `acknowledged`, a row counts as delivered once the server has it."""

    def __init__(
        self,
        url: str,
        subject: str = EVENT_TYPE,
        login: NatsLogin | None = None,
        *,
        acknowledged: bool = True,
    ) -> None:
        """Reads the system's certificates. Raises ValueError for a malformed address or subject."""
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
        self._trust = ssl.create_default_context()

    async def reach(self) -> None:
        """Connect and log in; publish nothing. Raises AdapterError."""
        async with self._connected():
            pass

    async def send_events(self, rows: Sequence[Mapping[str, JsonValue]]) -> None:
        """Publish every row, or raise AdapterError. JetStream drops repeats by `Nats-Msg-Id`."""
        async with self._connected() as client:
            stream = client.jetstream()
            for first in range(0, len(rows), ROWS_IN_FLIGHT):
                acks = []
                for row in rows[first : first + ROWS_IN_FLIGHT]:
                    headers = {"Nats-Msg-Id": event_id(row), "Content-Type": CONTENT_TYPE}
                    body = orjson.dumps(cloud_event(row))
                    if self._acknowledged:
                        ack = await stream.publish_async(self._subject, body, headers=headers)
                        acks.append(ack)
                    else:
                        await client.publish(self._subject, body, headers=headers)
                await (asyncio.gather(*acks) if acks else client.flush())

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        """A client that is logged in. Errors within it become AdapterError."""
        check_egress(self._host)
        client, reported = Client(), list[Exception]()

        async def on_error(error: Exception) -> None:
            reported.append(error)
            if client.is_connected and not deadline.expired():
                deadline.reschedule(0)  # the reply never comes: fail now

        deadline = asyncio.timeout(SEND_TIMEOUT_S)
        try:
            async with deadline:
                addresses = await self._addresses()
                try:
                    await self._connect(client, addresses, on_error)
                    yield client
                finally:
                    with suppress(TimeoutError, OSError, nats.errors.Error):
                        async with asyncio.timeout(CLOSE_TIMEOUT_S):
                            await client.close()
        except (OSError, nats.errors.Error) as error:  # TimeoutError is an OSError
            # Neither a failed address nor a refused publication is raised: both are reported.
            is_vague = isinstance(error, TimeoutError | nats.errors.NoServersError)
            raise self._adapter_error(reported[-1] if is_vague and reported else error) from error

    async def _connect(
        self,
        client: Client,
        addresses: list[str],
        on_error: Callable[[Exception], Awaitable[None]],
    ) -> None:
        before = self._handshakes()

        def unless_clear(secret: str = "") -> str:
            """nats-py goes on without TLS where the server offers none: send no login then, no row."""
            if self._tls and self._handshakes() == before:
                raise Refused(f"{self._host} offers no TLS; use nats:// if that is intended")
            return secret

        login = self._login
        try:
            await client.connect(
                addresses,
                error_cb=on_error,
                name="kortex",
                no_echo=True,
                tls=self._trust,
                tls_hostname=self._host,
                user=login.user or None,
                password=partial(unless_clear, login.password),
                token=partial(unless_clear, login.token) if login.token else None,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                dont_randomize=True,
                pending_size=0,  # a full buffer would wait without end on a server that reads nothing
            )
        except (
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
        ) as error:  # of a malformed greeting
            raise BadAnswer(f"{self._host} does not speak NATS") from error
        unless_clear()

    def _handshakes(self) -> int:
        return self._trust.session_stats()["connect_good"]

    async def _addresses(self) -> list[str]:
        found = await asyncio.get_running_loop().getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM
        )
        addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
        for address in addresses:
            check_resolved(self._host, address)
        return [f"nats://{f'[{each}]' if ':' in each else each}:{self._port}" for each in addresses]

    def _adapter_error(self, error: Exception) -> AdapterError:
        match error:
            case TimeoutError():
                return TimedOut(f"{self._host} took no rows within {SEND_TIMEOUT_S:.0f} s")
            case OSError() | nats.errors.StaleConnectionError():
                return Unreachable(f"{self._host}: {type(error).__name__}")
            case NoStreamResponseError():
                return BadAnswer(_NO_STREAM)
            case APIError():
                return BadAnswer(f"the stream took no row: {error.description}")
            case nats.errors.MaxPayloadError():
                return BadAnswer("a row is larger than the server's max_payload")
            case nats.errors.Error():
                words = str(error).removeprefix("nats: ")
                if "authorization" in words.lower() or "permissions" in words.lower():
                    return Refused(f"the NATS server refused it: {words}")
                return BadAnswer(f"{self._host}: {words}")
            case _:
                return BadAnswer(f"{self._host} does not speak NATS")
