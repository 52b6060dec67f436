"""Loki, Prometheus, Tempo and Jaeger behind Grafana's data source proxy: one address, one token.

https://grafana.com/docs/grafana/latest/developers/http_api/data_source/: a request to
`/api/datasources/proxy/uid/<uid>/` reaches the data source as it is, with Grafana's credentials for
it. A token needs `datasources:query`, and to look one up by its name `datasources:read` as well.
"""

import re
from datetime import timedelta
from typing import Final
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from adapters.observe.backend import Backend, refusal
from adapters.observe.remembered import Remembered
from tools.errors import UpstreamFailed

_BY_NAME: Final = "/api/datasources/name/"
_UID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")  # as Grafana itself checks it
_REMEMBERED_FOR: Final = timedelta(minutes=5)  # a data source may be recreated


class _DataSource(BaseModel):
    uid: str


def is_uid(text: str) -> bool:
    return _UID.fullmatch(text) is not None


def proxied(address: str, uid: str) -> str:
    """The address of a data source behind a Grafana."""
    return f"{address.strip().rstrip('/')}/api/datasources/proxy/uid/{uid}"


def read_through(client: httpx.AsyncClient, name: str) -> None:
    """Route all requests of this Grafana client to the data source of that name.

    The first request looks it up, and raises UpstreamFailed if there is none.
    """
    client.event_hooks = {"request": [_Proxy(client, name)]}


class _Proxy:
    def __init__(self, client: httpx.AsyncClient, name: str) -> None:
        self._backend = Backend("Grafana", client)
        self._base = client.base_url.raw_path.rstrip(b"/")
        self._name = name
        self._uid: Remembered[str] = Remembered(_REMEMBERED_FOR)

    async def __call__(self, request: httpx.Request) -> None:
        asked = request.url.raw_path.removeprefix(self._base)
        if asked.startswith(_BY_NAME.encode()):
            return
        uid = await self._uid.get("", self._look_up)
        path = self._base + proxied("", uid).encode("ascii") + asked
        request.url = request.url.copy_with(raw_path=path)

    async def _look_up(self) -> str:
        answer = await self._backend.get(f"{_BY_NAME}{quote(self._name, safe='')}", {})
        if answer.status == 404:
            raise UpstreamFailed(f"Grafana has no data source called {self._name!r}", 404)
        if not answer.ok:
            raise refusal(answer)
        try:
            uid = _DataSource.model_validate_json(answer.body).uid
        except ValidationError as error:
            raise UpstreamFailed("Grafana: not a data source", answer.status) from error
        if not is_uid(uid):
            raise UpstreamFailed("Grafana: a data source with an invalid uid")
        return uid
