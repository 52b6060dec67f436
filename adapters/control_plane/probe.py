"""Reading an action's target over HTTP, before anybody confirmed and again before a dispatch.

It holds the reading credentials alone: those of the endpoints are `client`'s, after a Confirm. An
answer that does not clearly say how much it counts is refused: an uncounted target is no small one.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import quote
from uuid import uuid4

import httpx
import orjson
from pydantic import JsonValue

from adapters.control_plane.exchange import exchange, url_of, value_of
from adapters.control_plane.orders import order_body
from adapters.control_plane.port import BadTemplate, ControlOrder, Objects, ProbeFailed, fill
from adapters.errors import AdapterError

MAX_NAMES: Final = 50
MAX_FACT_CHARS: Final = 300
_LISTS: Final = ("objects", "items", "targets")
# Kubernetes: generation counts every change of the spec (API conventions, "metadata.generation").
_KUBERNETES: Final = (
    "metadata.generation",
    "spec.replicas",
    "spec.template.spec.containers.image",
)
_CONTROL_PLANE: Final = ("config_hash", "version")


class HttpProbe:
    """Implements `Probe`. Safe for concurrent use; the caller owns the client.

    `credentials` gives the reading token of a credential id; raises KeyError if there is none.
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
            url = url_of(fill(template, order.product, order.params), query)
            headers = self._headers(order, key)
        except BadTemplate as error:
            raise ProbeFailed(f"the action's URL cannot be used: {error}") from error
        except KeyError as error:
            raise ProbeFailed("the action's reading credential is not configured") from error
        request = self._client.build_request(
            method,
            url,
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


def objects_in(answer: JsonValue) -> Objects:
    """From a number, a list, `{"count": 2}`, `{"objects": [...]}` or a Kubernetes list.

    Raises ProbeFailed for anything else.
    """
    match answer:
        case int() if not isinstance(answer, bool) and answer >= 0:
            return Objects(answer)
        case list():
            return Objects(len(answer), _names(answer))
        case dict():
            return _objects_of(answer)
        case _:
            raise ProbeFailed("its count is neither a number nor a list of objects")


def _objects_of(answer: Mapping[str, JsonValue]) -> Objects:
    listed = next((v for key in _LISTS if isinstance(v := answer.get(key), list)), None)
    names = _names(listed or [])
    given = answer.get("count")
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return Objects(max(given, len(listed or [])), names)
    if listed is None:
        raise ProbeFailed("its count has neither `count` nor a list of `objects`")
    return Objects(len(listed) + _left_out(answer.get("metadata")), names)


def _left_out(metadata: JsonValue) -> int:
    page = metadata if isinstance(metadata, dict) else {}
    if not page.get("continue"):
        return 0
    remaining = page.get("remainingItemCount")
    if isinstance(remaining, int):
        return remaining
    raise ProbeFailed("its list of objects is cut and does not say how many are left")


def _names(listed: Sequence[JsonValue]) -> tuple[str, ...]:
    return tuple(name for each in listed[:MAX_NAMES] if (name := _name(each)))


def _name(each: JsonValue) -> str:
    if isinstance(each, str):
        return each
    if not isinstance(each, dict):
        return ""
    metadata = each.get("metadata")
    named = each.get("name") or (metadata.get("name") if isinstance(metadata, dict) else "")
    return named if isinstance(named, str) else ""


def facts_in(answer: JsonValue, fields: Sequence[str] = ()) -> Mapping[str, str]:
    """The named fields of the answer, or the usual ones of a control plane or Kubernetes.

    Raises ProbeFailed when a named field is missing, or none of the usual ones is there.
    """
    if not isinstance(answer, dict):
        raise ProbeFailed("its state is not a JSON object")
    wanted = fields or (_KUBERNETES if "metadata" in answer else _CONTROL_PLANE)
    facts = {path: text for path in wanted if (text := _fact(answer, path.split("."))) is not None}
    if not facts or (fields and len(facts) < len(wanted)):
        raise ProbeFailed(f"its state lacks {', '.join(p for p in wanted if p not in facts)}")
    return facts


def _fact(value: JsonValue, path: Sequence[str]) -> str | None:
    """The text at the path; of a list, every element's."""
    if isinstance(value, list) and path:
        each = [text for item in value if (text := _fact(item, path)) is not None]
        return ", ".join(each) or None
    if not path:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        return text if len(text) <= MAX_FACT_CHARS else _hashed(text)
    if not isinstance(value, dict) or path[0] not in value:
        return None
    return _fact(value[path[0]], path[1:])


def _hashed(text: str) -> str:
    return f"{text[:60]}… sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
