"""Requests to the API server: GET and the question what this identity may do, nothing else."""

import asyncio
import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from adapters.errors import BadAnswer
from adapters.http.client import answer_to, http_client
from adapters.http.errors import tool_errors
from adapters.kubernetes.config import Access, AccessInvalid
from adapters.kubernetes.exec_credentials import NO_PAIR, Credential, ExecCredentials
from adapters.kubernetes.kinds import Kind
from tools.errors import InvalidArguments, UpstreamFailed
from tools.outside_json import Unread, parse

MAX_BYTES: Final = 8 << 20
TIMEOUT_S: Final = 300.0  # the ceiling of a wide query; the runner cuts earlier
REVIEW_TIMEOUT_S: Final = 30.0  # of a question about permissions, which no tool waits for
TOKEN_LIFE_S: Final = 60.0  # a mounted token is renewed long before it ends, so a minute is enough
_MAX_CONNECTIONS: Final = 16
_MAX_WORDS: Final = 500
_MOST_BEFORE: Final = 2  # clients of certificates that were replaced
# Reads only: what POST is for is asking about permissions.
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
# What a reading bot must not be able to do: verb, group, resource, subresource.
FORBIDDEN: Final = (
    ("create", "", "pods", ""),
    ("delete", "", "pods", ""),
    ("create", "", "pods", "exec"),
    ("get", "", "pods", "exec"),
    ("patch", "apps", "deployments", ""),
    ("update", "apps", "deployments", "scale"),
    ("get", "", "secrets", ""),
    ("list", "", "secrets", ""),
)
ModelT = TypeVar("ModelT")


class _Status(BaseModel):
    message: str = ""


class _ReviewStatus(BaseModel):
    allowed: bool = False


class _Review(BaseModel):
    status: _ReviewStatus = _ReviewStatus()


class KubernetesApi:
    """One API server. Owns its client; `aclose` it."""

    def __init__(self, access: Access) -> None:
        host = urlsplit(access.server).hostname
        if not host:
            raise ValueError("the API server has no address")
        self._access = access
        self._host = host
        self._client = self._open(access.tls)
        self._token, self._token_until = "", 0.0
        self._plugin = ExecCredentials(access.plugin) if access.plugin else None
        self._goes_as: Credential | None = None
        self._changing = asyncio.Lock()
        self._before: list[httpx.AsyncClient] = []

    @property
    def namespace(self) -> str:
        """The one to look into when none is named."""
        return self._access.namespace

    async def aclose(self) -> None:
        for each in (*self._before, self._client):
            await each.aclose()

    def _open(self, tls: ssl.SSLContext | None) -> httpx.AsyncClient:
        return http_client(
            base_url=self._access.server.rstrip("/"),
            tls=tls,
            read_s=TIMEOUT_S,
            max_connections=_MAX_CONNECTIONS,
            allowed_hosts=frozenset({self._host}),
            proxy=self._access.proxy,
        )

    async def get(
        self, path: str, params: Mapping[str, str] | None = None, accept: str = "application/json"
    ) -> bytes:
        """The body of a 200. Raises InvalidArguments (400, 404), UpstreamFailed, CapabilityUnavailable."""
        response, body = await self._send("GET", path, dict(params or {}), accept, None)
        if response.is_success:
            return body
        words = status_words(body)
        if response.status_code in {400, 404}:
            raise InvalidArguments(words)
        raise UpstreamFailed(words, response.status_code)

    async def may(
        self, verb: str, group: str, resource: str, subresource: str, namespace: str = ""
    ) -> bool:
        """Whether this identity may do it in that namespace; "" asks for all of them at once.

        Raises UpstreamFailed, CapabilityUnavailable.
        """
        attributes = {
            "verb": verb,
            "group": group,
            "resource": resource,
            "subresource": subresource,
            "namespace": namespace,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        response, body = await self._send("POST", _REVIEWS, {}, "application/json", review)
        if not response.is_success:
            raise UpstreamFailed(status_words(body), response.status_code)
        return parsed(TypeAdapter(_Review), body).status.allowed

    async def excess(self, namespaces: Sequence[str] = ()) -> list[str]:
        """The rights that this identity should not have: `delete pods`, `get secrets in shop`.

        Checked for the whole cluster, the default namespace and each of `namespaces`: a right in
        one of them does not show in the rest. Raises as `may`.
        """
        places = ("", *dict.fromkeys((self.namespace, *namespaces)))
        try:
            async with asyncio.TaskGroup() as group:
                asked = [
                    (right, place, group.create_task(self.may(*right, place)))
                    for right in FORBIDDEN
                    for place in places
                ]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed  # its failure cancelled the others
        everywhere = {right for right, place, task in asked if not place and task.result()}
        return [
            _in_words(right, place)
            for right, place, task in asked
            if task.result() and (not place or right not in everywhere)
        ]

    async def unlisted(self, kinds: Sequence[Kind], namespaces: Sequence[str] = ()) -> list[str]:
        """The kinds that this identity may not list, in one of `namespaces` or, without any, in all.

        Raises as `may`.
        """
        try:
            async with asyncio.TaskGroup() as group:
                asked = [
                    (
                        kind,
                        group.create_task(self.may("list", kind.api_group, kind.plural, "", place)),
                    )
                    for kind in kinds
                    for place in (namespaces if kind.namespaced and namespaces else ("",))
                ]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        return list(dict.fromkeys(kind.plural for kind, task in asked if not task.result()))

    async def _send(
        self,
        method: str,
        path: str,
        params: dict[str, str],
        accept: str,
        body: Mapping[str, object] | None,
    ) -> tuple[httpx.Response, bytes]:
        with tool_errors("the Kubernetes API"):
            async with asyncio.timeout(TIMEOUT_S if body is None else REVIEW_TIMEOUT_S):
                used = await self._plugin.now() if self._plugin else None
                answered = await self._once(used, method, path, params, accept, body)
                if used is None or self._plugin is None or answered[0].status_code != 401:
                    return answered
                other = await self._plugin.now(used)
                if other is used:
                    return answered
                # Everything asked here may be asked twice: it changes nothing.
                return await self._once(other, method, path, params, accept, body)

    async def _once(
        self,
        credential: Credential | None,
        method: str,
        path: str,
        params: dict[str, str],
        accept: str,
        body: Mapping[str, object] | None,
    ) -> tuple[httpx.Response, bytes]:
        if credential is None:
            token = await self._current_token()
        else:
            await self._go_as(credential)
            token = credential.token
        headers = {"Accept": accept} | ({"Authorization": f"Bearer {token}"} if token else {})
        client = self._client
        request = client.build_request(method, path, params=params, headers=headers, json=body)
        return await answer_to(client, request, MAX_BYTES)

    async def _go_as(self, credential: Credential) -> None:
        if credential is self._goes_as:
            return
        async with self._changing:
            before = self._goes_as.pair if self._goes_as else NO_PAIR
            if credential.pair != before and self._access.tls_as is not None:
                try:
                    tls = await asyncio.to_thread(self._access.tls_as, *credential.pair)
                except AccessInvalid as error:
                    raise BadAnswer(str(error)) from error
                # Requests under way end on the connections of before; those of long before are over.
                self._before.append(self._client)
                self._client = self._open(tls)
                if len(self._before) > _MOST_BEFORE:
                    await self._before.pop(0).aclose()
            self._goes_as = credential

    async def _current_token(self) -> str:
        if time.monotonic() >= self._token_until:
            self._token = await asyncio.to_thread(self._access.token)
            self._token_until = time.monotonic() + TOKEN_LIFE_S
        return self._token


def _in_words(right: tuple[str, str, str, str], place: str) -> str:
    verb, _, resource, sub = right
    return f"{verb} {resource}{'/' + sub if sub else ''}{' in ' + place if place else ''}"


def parsed(adapter: TypeAdapter[ModelT], body: bytes, unread: Unread | None = None) -> ModelT:
    """The body; entries that cannot be read are left out, and counted in `unread` or logged.

    Raises UpstreamFailed when the body is something else.
    """
    try:
        return parse(adapter, body, unread)
    except ValidationError as error:
        raise UpstreamFailed("not what the Kubernetes API promises") from error


def status_words(body: bytes) -> str:
    """The message of a Status, else the beginning of the body."""
    try:
        words = parse(TypeAdapter(_Status), body).message
    except ValidationError:
        words = body.decode("utf-8", "replace")
    return " ".join(words.split())[:_MAX_WORDS] or "no explanation"
