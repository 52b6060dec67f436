"""Credentials that a program gives, as kubeconfigs of EKS and GKE name one (`exec`).

https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
The program is the operator's, by the kubeconfig they name. It is run without a shell and without a
terminal, given no more of our environment than it needs, and ended when it takes too long.
"""

import asyncio
import contextlib
import os
import re
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE, Process, SubprocessStreamProtocol
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from pydantic import BaseModel, Field, ValidationError

from adapters.errors import BadAnswer, Refused, TimedOut, Unreachable
from adapters.http.egress import check_program
from tools.output import lines_of

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
REAP_S: Final = 1.0  # of a program that was killed
RUN_S: Final = 20.0  # a tool that waits for it has 30
# Asked again so long before the end: a request takes its time, and two clocks differ.
MARGIN_S: Final = 60.0
# The shortest interval, even if clocks jump or the server keeps refusing.
LEAST_S: Final = 10.0
_MAX_BYTES: Final = 1 << 20
_MAX_SAID: Final = 4096
_CHUNK_BYTES: Final = 65_536
_MAX_WORDS: Final = 120
_LONG_RUN: Final = re.compile(r"\S{24,}")  # what may be a token; no word is so long
# Of our environment it gets these and nothing else: ours holds the tokens of everything.
_NAMES: Final = frozenset(
    ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE",
     "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy",
     "no_proxy", "GOOGLE_APPLICATION_CREDENTIALS", "USE_GKE_GCLOUD_AUTH_PLUGIN")
)  # fmt: skip
NO_PAIR: Final = ("", "")
_PREFIXES: Final = ("AWS_", "AZURE_", "CLOUDSDK_", "XDG_")


@dataclass(frozen=True, slots=True)
class Plugin:
    """The exec plugin of a kubeconfig. `info` is its input (KUBERNETES_EXEC_INFO)."""

    command: str
    arguments: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    api_version: str
    info: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Credential:
    """A bearer token, a client certificate with its key in PEM, or both. `until` is monotonic."""

    token: str = field(repr=False)
    certificate: str = field(repr=False)
    key: str = field(repr=False)
    asked_at: float
    until: float | None

    @property
    def pair(self) -> tuple[str, str]:
        """Certificate and key; empty for none."""
        return self.certificate, self.key


class _Status(BaseModel):
    token: str = ""
    expires: datetime | None = Field(default=None, alias="expirationTimestamp")
    certificate: str = Field(default="", alias="clientCertificateData")
    key: str = Field(default="", alias="clientKeyData")


class _Answer(BaseModel):
    version: str = Field(alias="apiVersion")
    kind: str
    status: _Status


Run = Callable[[Plugin], Awaitable[bytes]]


class ExecCredentials:
    """Asks the program once for everybody, and again when its answer is over or was refused."""

    def __init__(
        self,
        plugin: Plugin,
        run: Run | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plugin = plugin
        self._run = run or run_plugin
        self._clock = clock
        self._lock = asyncio.Lock()
        self._kept: Credential | None = None
        self._failed: tuple[float, Exception] | None = None

    async def now(self, refused: Credential | None = None) -> Credential:
        """What to go as. `refused` is one that the server did not take. Raises AdapterError."""
        async with self._lock:
            kept, at = self._kept, self._clock()
            if kept is not None and not self._is_over(kept, refused, at):
                return kept
            if self._failed is not None and at - self._failed[0] < LEAST_S:
                raise self._failed[1]
            try:
                self._kept = self._read(await self._run(self._plugin))
            except (BadAnswer, Refused, TimedOut, Unreachable) as error:
                self._failed = (self._clock(), error)
                raise
            self._failed = None
            return self._kept

    def _is_over(self, kept: Credential, refused: Credential | None, at: float) -> bool:
        if kept is refused:
            return at - kept.asked_at >= LEAST_S
        return kept.until is not None and at >= kept.until

    def _read(self, answer: bytes) -> Credential:
        name = os.path.basename(self._plugin.command)  # noqa: PTH119 - of a text, no file is met
        try:
            found = _Answer.model_validate_json(answer)
        except ValidationError:
            raise BadAnswer(f"{name} gave no ExecCredential") from None  # it may hold a token
        if (found.version, found.kind) != (self._plugin.api_version, "ExecCredential"):
            raise BadAnswer(f"{name} did not return {self._plugin.api_version}")
        status = found.status
        if not (status.token or (status.certificate and status.key)):
            raise BadAnswer(f"{name} gave neither a token nor a certificate with its key")
        if not (status.token.isascii() and status.token.isprintable()):
            raise BadAnswer(f"{name} gave a token that no header may hold")
        at = self._clock()
        return Credential(
            status.token, status.certificate, status.key, at, _until(status.expires, at)
        )


def _until(expires: datetime | None, at: float) -> float | None:
    """By our monotonic clock, which does not jump. None: until it is refused."""
    if expires is None:
        return None
    aware = expires if expires.tzinfo else expires.replace(tzinfo=UTC)
    return at + max(LEAST_S, (aware - datetime.now(UTC)).total_seconds() - MARGIN_S)


async def run_plugin(plugin: Plugin, *, timeout_s: float = RUN_S) -> bytes:
    """What the program prints. Its children end with it. Raises AdapterError."""
    name = os.path.basename(plugin.command)  # noqa: PTH119 - of a text, no file is met
    check_program(name)
    loop = asyncio.get_running_loop()
    try:
        # As `create_subprocess_exec`, which keeps the transport to itself.
        transport, protocol = await loop.subprocess_exec(
            lambda: SubprocessStreamProtocol(_CHUNK_BYTES, loop),
            plugin.command,
            *plugin.arguments,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            env={**plugin.env, "KUBERNETES_EXEC_INFO": plugin.info},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no name of a program"
        raise Unreachable(f"{name} cannot be run: {why}") from error
    process = Process(transport, protocol, loop)
    try:
        async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as reading:
            out = reading.create_task(_capped(process.stdout, _MAX_BYTES))
            said = reading.create_task(_capped(process.stderr, _MAX_SAID))
            code = reading.create_task(process.wait())
    except TimeoutError:
        raise TimedOut(f"{name} gave no credentials within {timeout_s:g} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        transport.close()  # a process that left the group may hold the pipes
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REAP_S):
                await process.wait()  # else it stays a zombie until the loop comes round
    if code.result() != 0:
        raise Unreachable(f"{name} ended with {code.result()}{_words(said.result())}")
    if len(out.result()) > _MAX_BYTES:
        raise BadAnswer(f"{name} printed more than {_MAX_BYTES} bytes")
    return out.result()


async def _capped(stream: asyncio.StreamReader | None, most: int) -> bytes:
    """The beginning; the rest is read and dropped, so that the program is not held up."""
    assert stream is not None  # noqa: S101 - opened with pipes
    found = b""
    while part := await stream.read(_CHUNK_BYTES):
        found = (found + part)[: most + 1]
    return found


def _words(said: bytes) -> str:
    lines = [line for line in lines_of(said.decode("utf-8", "replace")) if line.strip()]
    if not lines:
        return ""
    last = "".join(c if c.isprintable() else " " for c in _LONG_RUN.sub("...", lines[-1]))
    return f": {' '.join(last.split())[:_MAX_WORDS]}"


def own_environment(env: Mapping[str, str]) -> dict[str, str]:
    """What of our environment such a program is given."""
    return {k: v for k, v in env.items() if k in _NAMES or k.startswith(_PREFIXES)}
