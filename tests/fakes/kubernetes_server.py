"""A fake of kube-apiserver 1.36: tables, Status errors, logs, events, access reviews."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiohttp import web

TOKEN = "token-of-the-cluster-Xy12Zz89"


class KubernetesServer:
    """Holds objects by their path, and pages them as `limit` says.

    `allowed` are the (verb, resource) that its reviews grant everywhere, or with a third part in
    that namespace alone.

    Without a token it is 403 as system:anonymous, with a wrong one 401.
    """

    def __init__(
        self,
        objects: Mapping[str, Mapping[str, Any]],
        events: Sequence[Mapping[str, Any]] = (),
        logs: Mapping[str, Sequence[str]] | None = None,
        allowed: Iterable[tuple[str, ...]] = (),
    ) -> None:
        self.objects = dict(objects)
        self.events = list(events)
        self.logs = dict(logs or {})
        self.allowed = set(allowed)
        self.requests: list[tuple[str, str, Mapping[str, str]]] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        path = request.raw_path.split("?", 1)[0]
        self.requests.append((request.method, path, dict(request.query)))
        given = request.headers.get("Authorization", "")
        if not given:
            return status(403, 'pods is forbidden: User "system:anonymous" cannot list')
        if given != f"Bearer {TOKEN}":
            return status(401, "Unauthorized")
        if path.endswith("/selfsubjectaccessreviews"):
            return await self._review(request)
        if request.method != "GET":
            return status(403, "forbidden: User cannot do that")
        if path.endswith("/log"):
            return self._log(request, path)
        if path.endswith("/events"):
            return self._events(request)
        return self._read(request, path)

    async def _review(self, request: web.Request) -> web.Response:
        asked = (await request.json())["spec"]["resourceAttributes"]
        resource = asked["resource"] + (f"/{asked['subresource']}" if asked["subresource"] else "")
        right = (asked["verb"], resource)
        allowed = right in self.allowed or (*right, asked["namespace"]) in self.allowed
        return web.json_response({"status": {"allowed": allowed}}, status=201)

    def _read(self, request: web.Request, path: str) -> web.Response:
        if path in self.objects:
            found = [self.objects[path]]
            if "as=Table" not in request.headers.get("Accept", ""):
                return web.json_response(found[0])
            return web.json_response(table(found))
        if path.startswith("/openapi/"):
            return status(404, "the server could not find the requested resource")
        if path.endswith("/customresourcedefinitions"):
            return status(403, "customresourcedefinitions is forbidden: User cannot list")
        plural = path.rsplit("/", 1)[-1]
        inside = [
            item
            for where, item in sorted(self.objects.items())
            if where.startswith(f"{path}/")
            or ("/namespaces/" not in path and f"/{plural}/" in where)
        ]
        if not inside and path.count("/") > 5:
            return status(404, f'{path.split("/")[-2]} "{plural}" not found')
        page, metadata = paged(request, inside)
        if "as=Table" in request.headers.get("Accept", ""):
            return web.json_response({**table(page), "metadata": metadata})
        return web.json_response({"kind": "List", "items": page, "metadata": metadata})

    def _log(self, request: web.Request, path: str) -> web.Response:
        pod = path.split("/")[-2]
        containers = [name for name in self.logs if name.startswith(f"{pod}/")]
        if not containers:
            return status(404, f'pods "{pod}" not found')
        wanted = request.query.get("container", "")
        if not wanted and len(containers) > 1:
            names = " ".join(name.split("/")[1] for name in containers)
            return status(
                400,
                f"a container name must be specified for pod {pod}, choose one of: [{names}]",
            )
        key = f"{pod}/{wanted}" if wanted else containers[0]
        if key not in self.logs:
            return status(400, f"container {wanted} is not valid for pod {pod}")
        if request.query.get("previous") == "true":
            return status(400, f'previous terminated container "{wanted}" in pod "{pod}" not found')
        lines = self.logs[key][-int(request.query["tailLines"]) :]
        return web.Response(text="".join(f"{line}\n" for line in lines))

    def _events(self, request: web.Request) -> web.Response:
        wanted = dict(
            part.split("=", 1) for part in request.query.get("fieldSelector", "").split(",") if part
        )
        found = [
            event
            for event in self.events
            if all(
                event["involvedObject"].get(key.removeprefix("involvedObject.")) == value
                for key, value in wanted.items()
            )
        ]
        page, metadata = paged(request, found)
        return web.json_response({"items": page, "metadata": metadata})


def paged(
    request: web.Request, items: Sequence[Mapping[str, Any]]
) -> tuple[Sequence[Mapping[str, Any]], dict[str, str]]:
    """A chunk as `limit` and `continue` say, and what is said of the next one."""
    begin = int(request.query.get("continue", "0"))
    end = begin + int(request.query.get("limit", "0") or len(items))
    return items[begin:end], ({"continue": str(end)} if end < len(items) else {})


def table(objects: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Name, status and, as of lower priority, the images: as the server makes it."""
    columns = [("Name", 0), ("Status", 0), ("Images", 1)]
    return {
        "kind": "Table",
        "columnDefinitions": [{"name": name, "priority": rank} for name, rank in columns],
        "rows": [
            {
                "cells": [
                    item["metadata"]["name"],
                    item.get("status", {}).get("phase", ""),
                    "secret-registry/image:1",
                ],
                "object": {
                    "metadata": {
                        "name": item["metadata"]["name"],
                        "namespace": item["metadata"].get("namespace", ""),
                    }
                },
            }
            for item in objects
        ],
        "metadata": {},
    }


def status(code: int, message: str) -> web.Response:
    """A failure as the server words it."""
    return web.json_response(
        {"kind": "Status", "status": "Failure", "message": message, "code": code}, status=code
    )
