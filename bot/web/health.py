"""Whether the process is up (`/healthz`) and whether it can work (`/readyz`), without any secret."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog
from aiohttp import web

from bot.ports.failures import StorageUnavailable

log = structlog.stdlib.get_logger(__name__)

# Below the 3 s that orchestrators commonly give a probe.
CHECK_TIMEOUT_S: Final = 2.0

Check = Callable[[], Awaitable[str | None]]
"""None when the part works, else a few words why not."""


async def healthz(_request: web.Request) -> web.Response:
    """The process answers; nothing else is asked, so that a slow database restarts nobody."""
    return web.json_response({"status": "up"})


def readyz(checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
    """200 when every part works, else 503; the body names the parts."""

    async def handle(_request: web.Request) -> web.Response:
        async with asyncio.TaskGroup() as group:
            asked = {name: group.create_task(_asked(name, check)) for name, check in checks.items()}
        problems = {name: task.result() for name, task in asked.items()}
        ready = not any(problems.values())
        parts = {name: {"ok": why is None, "detail": why or ""} for name, why in problems.items()}
        return web.json_response(
            {"ready": ready, "parts": parts},
            status=200 if ready else 503,
            headers={"Cache-Control": "no-store"},
        )

    return handle


async def _asked(name: str, check: Check) -> str | None:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await check()
    except TimeoutError:
        return f"no answer within {CHECK_TIMEOUT_S:g} s"
    except StorageUnavailable:
        return "cannot be reached"
    except Exception as error:  # noqa: BLE001 - a probe answers whatever breaks; details are logged
        log.warning("readiness.check_failed", part=name, error=type(error).__name__)
        return "the check failed"
