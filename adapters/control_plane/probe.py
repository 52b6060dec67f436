"""Reading an action's target over HTTP, before anybody confirmed and again before a dispatch.

It holds the reading credentials alone: those of the endpoints are `client`'s, after a Confirm.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from urllib.parse import quote
from uuid import uuid4

import httpx
import orjson
from pydantic import JsonValue

from adapters.control_plane.exchange import exchange, value_of
from adapters.control_plane.orders import order_body
from adapters.control_plane.port import BadTemplate, ControlOrder, Objects, ProbeFailed, fill
from adapters.control_plane.readings import facts_in, objects_in
from adapters.errors import AdapterError


class HttpProbe:
    """Implements `Probe`. Safe for concurrent use; the caller owns the client.

    `credentials` gives the reading token of a credential id; raises KeyError when there is none.
    """

    def __init__(self, client: httpx.AsyncClient, credentials: Callable[[str], str]) -> None:
        self._client = client
        self._credentials = credentials

    async def dry_run(self, order: ControlOrder) -> JsonValue:
        """POST the order with `dry_run` set; the answer's `preview` if it has one, else all of it."""
        # Never a key used before: an answer that a control plane kept is no reading of now, and the
        # order itself must not be given a rehearsal's.
        key = f"{order.idempotency_key}.dry-run.{uuid4().hex[:12]}"
        rehearsed = replace(order, dry_run=True)
        body = await self._read(
            order, "POST", order.endpoint.url, key=key, content=order_body(rehearsed)
        )
        if isinstance(body, dict) and body.get("preview") is not None:
            return body["preview"]
        return body

    async def count(self, order: ControlOrder) -> Objects:
        """GET the count URL, with the action and its parameters as query."""
        query = {
            "action": order.action,
            "product": order.product,
            "params": orjson.dumps(dict(order.params), option=orjson.OPT_SORT_KEYS).decode(),
        }
        return objects_in(
            await self._read(order, "GET", order.endpoint.reads.count_url, query=query)
        )

    async def fingerprint(self, order: ControlOrder) -> Mapping[str, str]:
        """GET the fingerprint URL."""
        reads = order.endpoint.reads
        return facts_in(
            await self._read(order, "GET", reads.fingerprint_url), reads.fingerprint_fields
        )

    async def _read(
        self,
        order: ControlOrder,
        method: str,
        template: str,
        *,
        key: str = "",
        content: bytes | None = None,
        query: Mapping[str, str] | None = None,
    ) -> JsonValue:
        reads = order.endpoint.reads
        try:
            url = httpx.URL(fill(template, order.product, order.params))
            headers = self._headers(order, key)
        except BadTemplate as error:
            raise ProbeFailed(f"the action's URL cannot be used: {error}") from error
        except KeyError as error:
            raise ProbeFailed("the action's reading credential is not configured") from error
        request = self._client.build_request(
            method,
            url.copy_merge_params(query) if query else url,
            headers=headers,
            content=content,
            timeout=reads.timeout_s,
        )
        try:
            status, body = await exchange(self._client, request, reads.timeout_s)
        except AdapterError as error:
            raise ProbeFailed(error.message) from error
        if not 200 <= status < 300:
            raise ProbeFailed(
                f"{request.url.host} answered {status}",
                refused=400 <= status < 500 and status not in (401, 403, 404, 408, 429),
                body=value_of(body),
            )
        return value_of(body)

    def _headers(self, order: ControlOrder, key: str) -> dict[str, str]:
        headers = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "X-Kortex-Actor": quote(order.confirmed_by, safe=":@.-_"),
        }
        if key:
            headers["Idempotency-Key"] = key
        credential = order.endpoint.reads.credential_id
        if credential and (token := self._credentials(credential)):
            headers["Authorization"] = f"Bearer {token}"
        return headers
