"""The control plane over HTTP: one POST per confirmed action, and one GET to ask what became of it.

Tokens are resolved here, at the call. Deciding whether to send belongs to `bot.actions.dispatch`.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

import aiohttp
import httpx
import orjson
from pydantic import JsonValue

from adapters.control_plane.port import AnswerKind, ControlAnswer, ControlOrder
from adapters.control_plane.urls import BadTemplate, fill
from adapters.errors import AdapterError
from adapters.http import mapped_errors, read_capped

MAX_ANSWER_BYTES: Final = 65_536
MAX_WORDS: Final = 500  # characters of an answer that is not JSON

# Words that a status answer may use for `state` (or `status`); anything else in a 2xx JSON object
# is the recorded answer itself.
_FAILED: Final = frozenset({"failed", "failure", "error", "rejected", "refused"})
_RUNNING: Final = frozenset({"running", "pending", "queued", "accepted", "in_progress"})
_NEITHER: Final = frozenset({"unknown", "not_found", "not_received"})

Credentials = Callable[[str], str]
"""Gives the token of a credential id; raises KeyError when there is none."""


class HttpControlPlane:
    """Implements `ControlPlane`. Safe for concurrent use; the caller owns the client."""

    def __init__(self, client: httpx.AsyncClient, credentials: Credentials) -> None:
        self._client = client
        self._credentials = credentials

    async def send(self, order: ControlOrder) -> ControlAnswer:
        """POST the order once. A connection that cannot be made is NOT_SENT; silence is LOST."""
        try:
            request = self._request(order, "POST", order.endpoint.url, body=_body(order))
        except (BadTemplate, KeyError) as error:
            return _not_sent(_unformed(error))
        try:
            status, body = await self._exchange(request, order.endpoint.timeout_s)
        except AdapterError as error:
            if isinstance(_root(error), aiohttp.ClientConnectorError):
                return _not_sent(error.message)
            return ControlAnswer(AnswerKind.LOST, error.message, error.status)
        return _sent_answer(status, body)

    async def ask(self, order: ControlOrder) -> ControlAnswer:
        """GET the action's status URL with the key. LOST unless it clearly says what happened."""
        endpoint = order.endpoint
        if not endpoint.status_url:
            return ControlAnswer(AnswerKind.LOST, "the action declares no status_url to ask")
        key = {"idempotency_key": order.idempotency_key}
        try:
            request = self._request(order, "GET", endpoint.status_url, params=key)
            status, body = await self._exchange(request, endpoint.timeout_s)
        except (BadTemplate, KeyError) as error:
            return ControlAnswer(AnswerKind.LOST, _unformed(error))
        except AdapterError as error:
            return ControlAnswer(AnswerKind.LOST, error.message, error.status)
        return _asked_answer(status, body)

    def _request(
        self,
        order: ControlOrder,
        method: str,
        template: str,
        *,
        body: bytes | None = None,
        params: Mapping[str, str] | None = None,
    ) -> httpx.Request:
        """Raises BadTemplate, KeyError (no such credential)."""
        endpoint = order.endpoint
        url = httpx.URL(fill(template, order.product))
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "Idempotency-Key": order.idempotency_key,
            "X-Kortex-Actor": quote(order.confirmed_by, safe=":@.-_"),
        }
        if endpoint.credential_id and (token := self._credentials(endpoint.credential_id)):
            headers["Authorization"] = f"Bearer {token}"
        return self._client.build_request(
            method,
            url.copy_merge_params(params) if params else url,
            headers=headers,
            content=body,
            timeout=endpoint.timeout_s,
        )

    async def _exchange(self, request: httpx.Request, timeout_s: float) -> tuple[int, bytes]:
        """The status and body; a body that breaks off or is too long is left out.

        Raises AdapterError when no status arrived.
        """
        with mapped_errors(f"the control plane at {request.url.host}"):
            async with asyncio.timeout(timeout_s):
                response = await self._client.send(request, stream=True, follow_redirects=False)
                try:
                    return response.status_code, await _body_or_nothing(response)
                finally:
                    await response.aclose()


async def _body_or_nothing(response: httpx.Response) -> bytes:
    """A status that has arrived stays true when its body does not."""
    try:
        return await read_capped(response, MAX_ANSWER_BYTES)
    except AdapterError:
        return b""


def _body(order: ControlOrder) -> bytes:
    return orjson.dumps(
        {
            "proposal_id": order.idempotency_key,
            "action": order.action,
            "product": order.product,
            "params": dict(order.params),
            "confirmed_by": order.confirmed_by,
            "dry_run": order.dry_run,
        }
    )


def _sent_answer(status: int, body: bytes) -> ControlAnswer:
    value = _value(body)
    match status:
        case _ if 200 <= status < 300:
            return ControlAnswer(AnswerKind.SUCCEEDED, f"answered {status}", status, value)
        case _ if 400 <= status < 500:
            return ControlAnswer(AnswerKind.FAILED, f"refused it with {status}", status, value)
        case _:
            return ControlAnswer(AnswerKind.LOST, f"answered {status}", status, value)


def _asked_answer(status: int, body: bytes) -> ControlAnswer:
    """Only a JSON object in a 2xx can settle it: any web server answers 200 or 404 to anything."""
    value = _value(body)
    if not 200 <= status < 300 or not isinstance(value, dict):
        return ControlAnswer(AnswerKind.LOST, f"status lookup answered {status}", status, value)
    state = value.get("state", value.get("status"))
    word = state.lower() if isinstance(state, str) else ""
    if word in _NEITHER:
        return ControlAnswer(AnswerKind.LOST, f"status lookup says {word}", status, value)
    if word in _RUNNING:
        return ControlAnswer(AnswerKind.RUNNING, f"status lookup says {word}", status, value)
    if word in _FAILED:
        return ControlAnswer(AnswerKind.FAILED, f"status lookup says {word}", status, value)
    return ControlAnswer(AnswerKind.SUCCEEDED, "status lookup has its answer", status, value)


def _value(body: bytes) -> JsonValue:
    """The JSON, or the beginning of the text when it is none."""
    try:
        value: JsonValue = orjson.loads(body) if body else None
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")[:MAX_WORDS]
    return value


def _not_sent(words: str) -> ControlAnswer:
    return ControlAnswer(AnswerKind.NOT_SENT, words)


def _unformed(error: BadTemplate | KeyError) -> str:
    if isinstance(error, KeyError):
        return "the action's credential is not configured"
    return f"the action's URL cannot be used: {error}"


def _root(error: BaseException) -> BaseException:
    """The first cause: what the network said."""
    while error.__cause__ is not None:
        error = error.__cause__
        if isinstance(error, aiohttp.ClientConnectorError):
            break
    return error
