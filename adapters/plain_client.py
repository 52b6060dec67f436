"""httpx's client without what none of ours wants: no cookies, no redirects, no URL read again and again.

It takes what httpx's takes and sends the same bytes. httpx reads and quotes a URL anew with each step of
building it, character by character: of a long query that costs more than to send it and read its answer.
"""

from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote_plus

import httpx

# A client's own addresses. Longer ones may hold what somebody wrote, and are read each time.
_REMEMBERED: Final = 64
_SHORT_CHARS: Final = 256
_ASKED_AGAIN_CHARS: Final = (
    4096  # people ask the same of a product, its filter by level alone is 1.3 kB
)
_LONGEST_QUERY_CHARS: Final = 60_000  # httpx refuses 65,537
_QUOTED: Final = [quote_plus(bytes([byte])) for byte in range(256)]
_AS_SET: Final = httpx.USE_CLIENT_DEFAULT


class _NoCookies(httpx.Cookies):
    """Takes none from an answer, so that none is ever sent."""

    def extract_cookies(self, response: httpx.Response) -> None:
        """Leave them in the answer."""


class PlainClient(httpx.AsyncClient):
    """One request, one answer: what is sent on elsewhere is for the caller to refuse."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._cookies = _NoCookies()
        self._located = lru_cache(_REMEMBERED)(self._merge_url)

    def build_request(
        self, method: str, url: httpx.URL | str, *, params: Any = None, **rest: Any
    ) -> httpx.Request:
        """As httpx's, with its query encoded once."""
        if isinstance(url, str):
            url = (self._located if len(url) <= _SHORT_CHARS else self._merge_url)(url)
            if params is not None and not self.params:
                query = query_text(params) if params else None
                if query is None or len(query) <= _LONGEST_QUERY_CHARS:
                    url, params = with_query(url, query), None
        return super().build_request(method, url, params=params, **rest)

    async def send(
        self,
        request: httpx.Request,
        *,
        stream: bool = False,
        auth: Any = _AS_SET,
        follow_redirects: Any = _AS_SET,
    ) -> httpx.Response:
        """As httpx's; what is streamed without a scheme of authentication goes straight out."""
        signed = auth is not _AS_SET or self.auth is not None or request.url.userinfo
        if not stream or signed or follow_redirects is True or self.is_closed:
            return await super().send(
                request, stream=stream, auth=auth, follow_redirects=follow_redirects
            )
        self._set_timeout(request)
        for hook in self.event_hooks["request"]:
            await hook(request)
        response = await self._transport_for_url(request.url).handle_async_request(request)
        response.request = request  # the transport of an application or of a test leaves it out
        return response


def query_text(params: Any) -> str:
    """As `urllib.parse.urlencode` has it, in half of its time."""
    pairs = httpx.QueryParams(params).multi_items()
    return "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs)


def with_query(url: httpx.URL, query: str | None) -> httpx.URL:
    """The same with that query, encoded already, instead of its own."""
    made = httpx.URL(url)
    made._uri_reference = url._uri_reference._replace(query=query)  # noqa: SLF001
    return made


def _quoted(text: str) -> str:
    return _remembered(text) if len(text) <= _ASKED_AGAIN_CHARS else _quoted_now(text)


def _quoted_now(text: str) -> str:
    return "".join(map(_QUOTED.__getitem__, text.encode()))


_remembered: Final = lru_cache(_REMEMBERED)(_quoted_now)
