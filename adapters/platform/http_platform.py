"""`tools.capabilities.Platform` over HTTP, in the asker's name and with the asker's own token.

The paths are those of innominatus: /api/specs, /api/workflows, /api/resources, /api/stats.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

import httpx

from adapters.audit_identity import identity_headers
from adapters.http.client import answer_to
from adapters.http.errors import tool_errors
from adapters.platform import answers
from adapters.platform.connections import PREFIX
from tools.capabilities import CallContext
from tools.errors import InvalidArguments, NobodyToAsk, UpstreamFailed
from tools.platform import Application, PlatformResource, PlatformStats, Workflow

MAX_BYTES: Final = 4 << 20
_LARGE_BYTES: Final = 256 * 1024  # reading more would block the loop too long
_TIMEOUT_S: Final = 30.0  # the ceiling of a look-up; the runner cuts earlier
_MAX_WORDS: Final = 300

Credentials = Callable[[str], str]
"""Gives the token of a connection id; raises KeyError without one."""


class HttpPlatform:
    """Safe for concurrent use; the caller owns the client, which has no credentials of its own."""

    def __init__(self, client: httpx.AsyncClient, credentials: Credentials) -> None:
        self._client = client
        self._credentials = credentials

    async def applications(self, call: CallContext) -> Sequence[Application]:
        """Raises UpstreamFailed, CapabilityUnavailable."""
        return await _read(answers.applications_of, await self._get("/api/specs", {}, call))

    async def application(self, name: str, call: CallContext) -> Application:
        """Raises InvalidArguments (no such one) too."""
        body = await self._get(f"/api/specs/{_segment(name)}", {}, call, f"app_name: {name!r}")
        return await _read(lambda found: answers.application_of(found, name), body)

    async def workflows(
        self, application: str, status: str, call: CallContext
    ) -> Sequence[Workflow]:
        """Filtered here as well: a platform may not know a filter and ignore it."""
        asked = {"app": application, "status": status}
        found = await _read(answers.workflows_of, await self._get("/api/workflows", asked, call))
        return [
            one
            for one in found
            if application in ("", one.application) and status in ("", one.status)
        ]

    async def workflow(self, workflow_id: str, call: CallContext) -> Workflow:
        """Raises InvalidArguments (no such one) too."""
        path = f"/api/workflows/{_segment(workflow_id)}"
        body = await self._get(path, {}, call, f"workflow_id: {workflow_id!r}")
        return await _read(lambda found: answers.workflow_of(found, workflow_id), body)

    async def resources(
        self, application: str, kind: str, call: CallContext
    ) -> Sequence[PlatformResource]:
        """Filtered here as well."""
        asked = {"app": application, "type": kind}
        found = await _read(answers.resources_of, await self._get("/api/resources", asked, call))
        return [
            one for one in found if application in ("", one.application) and kind in ("", one.type)
        ]

    async def stats(self, call: CallContext) -> PlatformStats:
        """Raises UpstreamFailed, CapabilityUnavailable."""
        return await _read(answers.stats_of, await self._get("/api/stats", {}, call))

    async def _get(
        self, path: str, params: Mapping[str, str], call: CallContext, asked_for: str = ""
    ) -> bytes:
        """The body of a 2xx. A 404 names the requested object, if there was one."""
        status, body = await self._send(path, params, call)
        if status in {404, 410} and asked_for:
            raise InvalidArguments(f"{asked_for} is not known to the platform")
        if 200 <= status < 300:
            return body
        words = " ".join(body.decode("utf-8", "replace").split())[:_MAX_WORDS]
        raise UpstreamFailed(words or "no explanation", status)

    async def _send(
        self, path: str, params: Mapping[str, str], call: CallContext
    ) -> tuple[int, bytes]:
        headers = {
            "Accept": "application/json",
            "Authorization": f"Bearer {self._token(call)}",
            **identity_headers(call),
        }
        with tool_errors("the platform"):
            async with asyncio.timeout(_TIMEOUT_S):
                request = self._client.build_request(
                    "GET", path, params={k: v for k, v in params.items() if v}, headers=headers
                )
                response, body = await answer_to(self._client, request, MAX_BYTES)
                return response.status_code, body

    def _token(self, call: CallContext) -> str:
        mine = [one for one in sorted(call.connection_ids) if one.startswith(PREFIX)]
        if len(mine) != 1:
            raise NobodyToAsk("the platform: the asker has no connection of their own")
        try:
            token = self._credentials(mine[0])
        except KeyError:
            token = ""
        if not token:
            raise NobodyToAsk("the platform: the asker's connection has no token")
        return token


async def _read(read: Callable[[bytes], answers.ValueT], body: bytes) -> answers.ValueT:
    if len(body) > _LARGE_BYTES:
        return await asyncio.to_thread(read, body)
    return read(body)


def _segment(name: str) -> str:
    """One segment of a path. Raises InvalidArguments for a relative step."""
    if name in ("", ".", ".."):
        raise InvalidArguments("name: which one")
    return quote(name, safe="")
