"""Poll for deploys, for systems without a webhook to us and for lost webhooks."""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final, Protocol, TypeVar

import httpx
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from adapters.errors import BadAnswer, RateLimited
from adapters.http.client import answer_to
from adapters.http.errors import check_status, mapped_errors
from adapters.ingested_event import IngestedEvent
from tools.outside_json import parse

MAX_BYTES: Final = 16 << 20  # a page of Argo CD applications with their resources
AnswerT = TypeVar("AnswerT")

MAX_NAME_BYTES: Final = 512


def _short(text: str) -> str:
    if len(text.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        raise ValueError(f"longer than {MAX_NAME_BYTES} bytes")
    return text


# What systems call things: a git ref, an OCI reference and a path of groups have some 250 characters
# at most. It becomes part of an id, which PostgreSQL indexes in 2,700 bytes.
Name = Annotated[str, AfterValidator(_short)]
Number = Annotated[int, Field(ge=0, lt=1 << 63)]
# A person's description; only its beginning is kept.
Words = Annotated[str, AfterValidator(lambda text: text[:4000])]


def _check_limit(response: httpx.Response) -> None:
    """Raises RateLimited for what GitHub says with 403: not forbidden, but too often.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """
    told, host = response.headers, response.request.url.host
    if response.status_code != 403 or told.get("x-ratelimit-remaining") != "0":
        return
    reset = told.get("x-ratelimit-reset", "")  # seconds since the epoch
    wait_s = max(0.0, int(reset) - time.time()) if re.fullmatch("[0-9]{1,12}", reset) else None
    raise RateLimited(f"{host} answered 403: asked too often", status=403, retry_after_s=wait_s)


class DeployFeed(Protocol):
    async def since(self, at: datetime) -> Sequence[IngestedEvent]:
        """The deploys that ended since then, the newest first if there are too many.

        The same events as its webhooks send, with the same ids. Raises AdapterError, ToolError.
        """
        ...


async def asked(
    client: httpx.AsyncClient,
    name: str,
    path: str,
    answer: TypeAdapter[AnswerT],
    params: httpx.QueryParams | Mapping[str, str] | None = None,
) -> AnswerT:
    """A GET of `path` below the client's address; unreadable entries are left out and logged.

    Raises AdapterError; no value is repeated in it.
    """
    with mapped_errors(name):
        request = client.build_request("GET", path, params=params)
        response, body = await answer_to(client, request, MAX_BYTES)
    _check_limit(response)
    check_status(response)
    try:
        return parse(answer, body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        raise BadAnswer(f"{name}: {where}: {first['msg']}") from error
