"""An on-call rota at any address that answers a GET in JSON."""

from dataclasses import dataclass

from adapters.http.client import DIRECT
from adapters.http.transport import Route
from adapters.on_call.port import checked, steps, texts_at
from adapters.on_call.reading import get_json, reading


@dataclass(frozen=True, slots=True)
class JsonOnCall:
    """`path` leads to the e-mail addresses or Slack ids. Raises ValueError for an invalid path."""

    url: str
    path: str
    timeout_s: float
    route: Route = DIRECT

    def __post_init__(self) -> None:
        steps(self.path)

    async def people(self) -> frozenset[str]:
        async with reading(self.url, self.timeout_s, self.route) as client:
            answer = await get_json(client, self.url, {"Accept": "application/json"})
        return checked(texts_at(answer, steps(self.path)))
