"""An on-call rota for the demo, on loopback: it names the same people all day.

It shows what `[roles.NAME.oncall]` reads: a JSON answer with e-mail addresses in it, for a token.
"""

import hmac
from collections.abc import Sequence

from aiohttp import web

ROTA_PATH = "/on-call"


def create_on_call(token: str, emails: Sequence[str]) -> web.Application:
    """`GET /on-call` → `{"people": [{"email": …}]}`."""

    async def now(request: web.Request) -> web.Response:
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            return web.json_response({"error": "unauthorized"}, status=401)
        return web.json_response({"people": [{"email": email} for email in emails]})

    app = web.Application()
    app.router.add_get(ROTA_PATH, now)
    return app
