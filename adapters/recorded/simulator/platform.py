"""The simulated shop's developer platform, and what its services say of themselves."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from pydantic import JsonValue

from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.topology import BY_NAME, SERVICES, Service
from tools.capabilities import CallContext, Clock, Deploy
from tools.errors import InvalidArguments
from tools.platform import Application, PlatformResource, PlatformStats, Workflow, WorkflowStep
from tools.timerange import instant_text

_ENVIRONMENT: Final = "production"
_STEPS: Final = ("validate", "provision", "deploy")
_FIRST_ID: Final = 4711
_AGE: Final = timedelta(days=412)


class RecordedPlatform:
    """Every service but the datastores is an application; every deploy of the incident a workflow."""

    def __init__(self, dataset: Dataset, clock: Clock) -> None:
        self._dataset = dataset
        self._clock = clock

    async def applications(self, call: CallContext) -> Sequence[Application]:
        del call
        return [_application(one) for one in SERVICES if not one.datastore]

    async def application(self, name: str, call: CallContext) -> Application:
        """Raises InvalidArguments."""
        found = next((a for a in await self.applications(call) if a.name == name), None)
        if found is None:
            raise InvalidArguments(f"app_name: {name!r} is not known to the platform")
        own = [one for one in _resources() if one.application == name]
        return replace(found, created_at=instant_text(self._dataset.start - _AGE), resources=own)

    async def workflows(
        self, application: str, status: str, call: CallContext
    ) -> Sequence[Workflow]:
        del call
        return [
            one
            for one in self._workflows()
            if application in ("", one.application) and status in ("", one.status)
        ]

    async def workflow(self, workflow_id: str, call: CallContext) -> Workflow:
        """Raises InvalidArguments."""
        del call
        for one in self._workflows():
            if one.id == workflow_id:
                return one
        raise InvalidArguments(f"workflow_id: {workflow_id!r} is not known to the platform")

    async def resources(
        self, application: str, kind: str, call: CallContext
    ) -> Sequence[PlatformResource]:
        del call
        return [
            one
            for one in _resources()
            if application in ("", one.application) and kind in ("", one.type)
        ]

    async def stats(self, call: CallContext) -> PlatformStats:
        applications, resources = await self.applications(call), list(_resources())
        kinds = sorted({one.type for one in resources})
        return PlatformStats(
            applications=len(applications),
            running_workflows=sum(one.status == "running" for one in self._workflows()),
            resources=len(resources),
            resources_by_type={kind: sum(r.type == kind for r in resources) for kind in kinds},
            applications_by_environment={_ENVIRONMENT: len(applications)},
        )

    def _workflows(self) -> list[Workflow]:
        begun = self._dataset.deploys(self._clock.now())
        newest = _FIRST_ID + len(begun) - 1
        return [self._workflow(newest - n, deploy) for n, deploy in enumerate(begun)]

    def _workflow(self, number: int, deploy: Deploy) -> Workflow:
        took = timedelta(seconds=deploy.duration_s or 90.0)
        done = deploy.at + took <= self._clock.now()
        status = "completed" if done else "running"
        seconds = int(took.total_seconds())
        return Workflow(
            id=str(number),
            name=f"deploy {deploy.product} {deploy.version}",
            application=deploy.product,
            status=status,
            started_at=instant_text(deploy.at),
            completed_at=instant_text(deploy.at + took) if done else "",
            duration=f"{seconds // 60}m {seconds % 60}s" if done else "",
            steps=[
                WorkflowStep(name, status if name == _STEPS[-1] else "completed") for name in _STEPS
            ],
        )


def _application(service: Service) -> Application:
    own = sum(one.application == service.name for one in _resources())
    return Application(service.name, _ENVIRONMENT, "running", resource_count=own)


def _resources() -> Iterator[PlatformResource]:
    """A database for those who call one, as the topology says; a route for the front door."""
    databases = {one.name: one for one in SERVICES if one.datastore}
    for service in SERVICES:
        for name in sorted({call.target for call in service.calls} & databases.keys()):
            properties: dict[str, JsonValue] = {
                "version": databases[name].version,
                "max_connections": 40,
            }
            yield PlatformResource(name, "postgres", service.name, "running", properties)
    yield PlatformResource("cart-sessions", "redis", "cart", "running", {"version": "7.2"})
    yield PlatformResource("shop", "route", "web", "running", {"host": "shop.example"})


class RecordedAdminInfo:
    """`/admin/info` of one incident: every service is up, even a slow one."""

    def __init__(self, dataset: Dataset, clock: Clock) -> None:
        self._dataset = dataset
        self._clock = clock

    async def info(self, product: str, call: CallContext) -> dict[str, JsonValue]:
        """Raises InvalidArguments (no such product)."""
        del call
        if product not in BY_NAME:
            raise InvalidArguments(f"product: the control plane knows no {product!r}")
        now = self._clock.now()
        newest = next(iter(self._dataset.deploys(now, product)), None)
        version = newest.version if newest else BY_NAME[product].version
        since = newest.at if newest else self._dataset.start
        build: dict[str, JsonValue] = {"commit": newest.commit} if newest else {}
        return {
            "product": product,
            "version": version,
            "uptime_s": int((now - since).total_seconds()),
            "health": "ok",
            "build": build,
            "config_hash": hashlib.sha256(f"{product} {version}".encode()).hexdigest()[:12],
            "feature_flags": {},
        }
