"""One HTTP backend of observability data, and the mapping of its failures.

Each adapter builds its requests and parses the answers; clients come from `adapters.http`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from adapters.http.client import answer_to
from adapters.http.errors import retry_after_s, tool_errors
from tools.errors import UpstreamFailed
from tools.outside_json import Unread, parse

_MAX_BYTES: Final = 32 << 20  # a page of 600 of Loki's longest lines (256 KiB) would not be shown
_TIMEOUT_S: Final = 300.0  # the ceiling of a wide query; the runner cuts earlier
_MAX_WORDS: Final = 500  # of an upstream's own explanation
_AT_ONCE: Final = 4  # requests of one question; it shares the backend with its people's dashboards
_LARGE_BYTES: Final = 256 * 1024  # reading more would block the loop too long
ModelT = TypeVar("ModelT")
AnsweredT = TypeVar("AnsweredT")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    retry_after_s: float | None = None
    link: str = ""  # the header of pages (RFC 8288)

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    def words(self) -> str:
        """The beginning of the body as one line of text: many errors are plain text."""
        return " ".join(self.body.decode("utf-8", "replace").split())[:_MAX_WORDS]


class Backend:
    """Sends requests to one backend. The caller owns the client and its credentials.

    `org_id` is the tenant of Loki and Mimir (header X-Scope-OrgID); empty sends none.
    """

    def __init__(
        self, name: str, client: httpx.AsyncClient, org_id: str = "", timeout_s: float = _TIMEOUT_S
    ) -> None:
        self.name = name
        self._client = client
        self._headers = {"X-Scope-OrgID": org_id} if org_id else {}
        self._timeout_s = timeout_s

    async def get(
        self,
        path: str,
        params: Mapping[str, str | Sequence[str]],
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Raises CapabilityUnavailable, UpstreamFailed (no usable answer)."""
        request = self._client.build_request(
            "GET", path, params=dict(params), headers={**self._headers, **(headers or {})}
        )
        return await self._send(request)

    async def post_form(self, path: str, form: Mapping[str, str | Sequence[str]]) -> Answer:
        """A read that may be longer than a URL. Raises as `get`."""
        request = self._client.build_request("POST", path, data=dict(form), headers=self._headers)
        return await self._send(request)

    async def post_json(
        self, path: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """A read with a JSON body. Raises as `get`."""
        sent = {"content-type": "application/json", **self._headers, **(headers or {})}
        request = self._client.build_request("POST", path, content=body, headers=sent)
        return await self._send(request)

    async def _send(self, request: httpx.Request) -> Answer:
        with tool_errors(self.name):
            async with asyncio.timeout(self._timeout_s):
                response, body = await answer_to(self._client, request, _MAX_BYTES)
        given = response.headers
        return Answer(response.status_code, body, retry_after_s(given), given.get("link", ""))


async def few_at_once(asks: Sequence[Callable[[], Awaitable[AnsweredT]]]) -> list[AnsweredT]:
    """The results, in order. Raises the first failure and cancels the rest."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def asked(ask: Callable[[], Awaitable[AnsweredT]]) -> AnsweredT:
        async with limit:
            return await ask()

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asked(ask)) for ask in asks]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from failed
    return [task.result() for task in tasks]


def refusal(answer: Answer, words: str = "") -> UpstreamFailed:
    """The error for a failed answer: its message, and the wait that it asks for."""
    wait = answer.retry_after_s
    said = words[:_MAX_WORDS] or answer.words() or "no explanation"
    later = f"; it asks to wait {wait:g} s" if wait is not None else ""
    return UpstreamFailed(f"{said}{later}", answer.status)


async def read_body(
    answer: Answer, adapter: TypeAdapter[ModelT], unread: Unread | None = None
) -> ModelT | None:
    """The body, read in a thread when it is large; None when it is something else.

    `unread` counts the entries that could not be read; without it they are logged.
    """
    try:
        if len(answer.body) > _LARGE_BYTES:
            return await asyncio.to_thread(parse, adapter, answer.body, unread)
        return parse(adapter, answer.body, unread)
    except ValidationError:
        return None
