"""What every capability over HTTP does: one request, a bounded answer, failures as tools know them.

Who is asked, how long, and what the answer means, each adapter says itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from adapters.errors import AdapterError, Unreachable
from adapters.http import mapped_errors, read_capped
from adapters.http_answer import Answer, Request
from adapters.http_client import HttpClient
from tools.errors import CapabilityUnavailable, UpstreamFailed


@contextmanager
def tool_errors(name: str) -> Iterator[None]:
    """Raises CapabilityUnavailable when `name` cannot be reached, UpstreamFailed for the rest."""
    try:
        with mapped_errors(name):
            yield
    except Unreachable as error:
        raise CapabilityUnavailable(error.message) from error
    except AdapterError as error:
        raise UpstreamFailed(error.message, error.status) from error


async def answer_to(client: HttpClient, request: Request, max_bytes: int) -> tuple[Answer, bytes]:
    """The answer, whatever its status, and its whole body. Raises as `send` and `read_capped` do."""
    response = await client.send(request)
    try:
        return response, await read_capped(response, max_bytes)
    finally:
        await response.aclose()
