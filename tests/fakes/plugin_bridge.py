"""A bridge that a plugin asks, and the manifest of that plugin."""

from collections.abc import Callable

from aiohttp import web

TOKEN = "bridge-token-5kQ8ZrXw1Vn"
NAME = "plugin__ticket_search"
MANIFEST = """\
name: ticket_search
description: Tickets of a product.
parameters:
  product: {{type: string, example: checkout}}
  text: {{type: string, required: false}}
  limit: {{type: integer, default: 3}}
endpoint:
  url: {url}/tickets/{{product}}
  networks: [{network}]
auth: {{type: header, name: X-Api-Key, value: "${{BRIDGE_TOKEN}}"}}
allowed_sessions: ["incident-*"]
timeout: 2s
fields: ["tickets[].key"]
"""


def manifest(url: str, network: str = "127.0.0.0/8") -> str:
    return MANIFEST.format(url=url, network=network)


class Bridge:
    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.answer: Callable[[], web.Response] = lambda: web.json_response(
            {"tickets": [{"key": "OPS-1", "reporter": "not for you"}]}
        )

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.raw_path, request.headers.get("X-Api-Key", "")))
        return self.answer()
