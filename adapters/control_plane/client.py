"""The control plane over HTTP: one POST per confirmed action, and one GET to ask what became of it.

Tokens are resolved here, at the call. Deciding whether to send belongs to `bot.actions.dispatch`.
"""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

import httpx

from adapters.control_plane.exchange import exchange, never_connected, unformed, url_of, value_of
from adapters.control_plane.orders import order_body
from adapters.control_plane.port import AnswerKind, BadTemplate, ControlAnswer, ControlOrder, fill
from adapters.errors import AdapterError

# Words that a status answer may use for `state` (or `status`); anything else in a 2xx JSON object
# is the recorded answer itself.
_FAILED: Final = frozenset({"failed", "failure", "error", "rejected", "refused"})
_RUNNING: Final = frozenset({"running", "pending", "queued", "accepted", "in_progress"})
_NEITHER: Final = frozenset({"unknown", "not_found", "not_received"})

Credentials = Callable[[str], str]
"""Gives the token of a credential id; raises KeyError without one."""


class HttpControlPlane:
    """Implements `ControlPlane`. Safe for concurrent use; the caller owns the client."""

    def __init__(self, client: httpx.AsyncClient, credentials: Credentials) -> None:
        self._client = client
        self._credentials = credentials

    async def send(self, order: ControlOrder) -> ControlAnswer:
        """POST the order once. A connection that cannot be made is NOT_SENT; silence is LOST."""
        try:
            request = self._request(order, "POST", order.endpoint.url, body=order_body(order))
        except (BadTemplate, KeyError) as error:
            return _not_sent(unformed(error))
        try:
            status, body = await exchange(self._client, request, order.endpoint.timeout_s)
        except AdapterError as error:
            if never_connected(error):
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
            status, body = await exchange(self._client, request, endpoint.timeout_s)
        except (BadTemplate, KeyError) as error:
            return ControlAnswer(AnswerKind.LOST, unformed(error))
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
        endpoint = order.endpoint
        url = url_of(fill(template, order.product), params)
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
            url,
            headers=headers,
            content=body,
            timeout=endpoint.timeout_s,
        )


def _sent_answer(status: int, body: bytes) -> ControlAnswer:
    value = value_of(body)
    match status:
        case _ if 200 <= status < 300:
            return ControlAnswer(AnswerKind.SUCCEEDED, f"answered {status}", status, value)
        case _ if 400 <= status < 500:
            return ControlAnswer(
                AnswerKind.FAILED, f"the control plane refused it with {status}", status, value
            )
        case _:
            return ControlAnswer(
                AnswerKind.LOST, f"the control plane answered {status}", status, value
            )


def _asked_answer(status: int, body: bytes) -> ControlAnswer:
    """Only a JSON object in a 2xx can settle it: any web server answers 200 or 404 to anything."""
    value = value_of(body)
    if not 200 <= status < 300 or not isinstance(value, dict):
        return ControlAnswer(AnswerKind.LOST, f"the status lookup answered {status}", status, value)
    state = value.get("state", value.get("status"))
    word = state.lower() if isinstance(state, str) else ""
    if word in _NEITHER:
        return ControlAnswer(AnswerKind.LOST, f"status lookup says {word}", status, value)
    if word in _RUNNING:
        return ControlAnswer(AnswerKind.RUNNING, f"status lookup says {word}", status, value)
    if word in _FAILED:
        return ControlAnswer(AnswerKind.FAILED, f"status lookup says {word}", status, value)
    return ControlAnswer(AnswerKind.SUCCEEDED, "status lookup has its answer", status, value)


def _not_sent(words: str) -> ControlAnswer:
    return ControlAnswer(AnswerKind.NOT_SENT, words)
