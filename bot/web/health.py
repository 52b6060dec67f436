"""Whether the process is up (`/healthz`) and whether it can work (`/readyz`), without any secret."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from aiohttp import web

from bot.ports.failures import DatabaseReplaced, StorageUnavailable

log = structlog.stdlib.get_logger(__name__)

# Below the 3 s that orchestrators commonly give a probe.
CHECK_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Note:
    """The part works, and there is something to know of it."""

    text: str


Check = Callable[[], Awaitable[str | Note | None]]
"""None or a note when the part works, else a few words why not."""


async def healthz(_request: web.Request) -> web.Response:
    """The process answers; nothing else is checked, so that a slow database causes no restart."""
    return web.json_response({"status": "up"})


def readyz(checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
    """200 when every part works, else 503; the body names the parts."""

    async def handle(_request: web.Request) -> web.Response:
        async with asyncio.TaskGroup() as group:
            asked = {
                name: group.create_task(_check_part(name, check)) for name, check in checks.items()
            }
        parts = {name: _part(task.result()) for name, task in asked.items()}
        ready = all(part["ok"] for part in parts.values())
        return web.json_response(
            {"ready": ready, "parts": parts},
            status=200 if ready else 503,
            headers={"Cache-Control": "no-store"},
        )

    return handle


def _part(found: str | Note | None) -> dict[str, bool | str]:
    if isinstance(found, Note):
        return {"ok": True, "detail": found.text}
    return {"ok": found is None, "detail": found or ""}


async def _check_part(name: str, check: Check) -> str | Note | None:
    try:
        async with asyncio.timeout(CHECK_TIMEOUT_S):
            return await check()
    except TimeoutError:
        return f"no answer within {CHECK_TIMEOUT_S:g} s"
    except DatabaseReplaced as error:
        return str(error)
    except StorageUnavailable:
        return "cannot be reached"
    except Exception as error:  # noqa: BLE001 - a probe answers whatever breaks; details are logged
        log.warning("readiness.check_failed", part=name, error=type(error).__name__)
        return "the check failed"
