"""Call one AWS service in its JSON protocol, signed by botocore (the extra `kortex[aws]`).

https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html: every operation is a POST to `/`
that a header names. An error of any status is JSON with its name in `__type`.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import httpx
import orjson
from pydantic import BaseModel, Field, JsonValue, ValidationError

from adapters.aws.credentials import AwsCredentials
from adapters.aws.signing import signed_headers
from adapters.errors import AdapterError
from adapters.observe.backend import Answer, Backend, refusal
from tools.errors import CapabilityUnavailable, InvalidArguments, UpstreamFailed

# AWS's own clients ask three times: https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
_WAITS_S: Final = (0.5, 1.5)
_THROTTLED: Final = frozenset(
    {"ThrottlingException", "Throttling", "TooManyRequestsException", "LimitExceededException"}
)
_OUR_FAULT: Final = frozenset(
    {"InvalidParameterException", "MalformedQueryException", "InvalidParameterValueException",
     "InvalidParameterValue", "InvalidParameterCombinationException", "InvalidParameterCombination",
     "ValidationException", "ValidationError"}
)  # fmt: skip


class _Failure(BaseModel):
    type: str = Field(default="", alias="__type")
    message: str = ""
    spelled_large: str = Field(default="", alias="Message")


@dataclass(frozen=True, slots=True)
class AwsService:
    """`signed_as` is its name in signatures and addresses, `target` and `version` its protocol's."""

    name: str
    signed_as: str
    target: str
    version: str


# https://github.com/boto/botocore/tree/develop/botocore/data: targetPrefix and jsonVersion.
CLOUDWATCH: Final = AwsService("CloudWatch", "monitoring", "GraniteServiceVersion20100801", "1.0")
CLOUDWATCH_LOGS: Final = AwsService("CloudWatch Logs", "logs", "Logs_20140328", "1.1")


class Aws:
    """One service of one region. The client's base URL is its address.

    `waits_s` are those before it asks again.
    """

    def __init__(
        self,
        service: AwsService,
        client: httpx.AsyncClient,
        credentials: AwsCredentials,
        region: str,
        waits_s: tuple[float, ...] = _WAITS_S,
    ) -> None:
        self.name = service.name
        self._service = service
        self._backend = Backend(service.name, client)
        self._credentials = credentials
        self._region = region
        self._url = f"{str(client.base_url).rstrip('/')}/"
        self._waits_s = waits_s

    async def call(self, operation: str, body: Mapping[str, JsonValue]) -> Answer:
        """What the operation answers; asked again where AWS says to slow down.

        Raises InvalidArguments for what AWS calls invalid, UpstreamFailed, CapabilityUnavailable.
        """
        content = orjson.dumps(body)
        answer = await self._asked(operation, content)
        for wait_s in self._waits_s:
            if answer.ok or not (_said(answer)[0] in _THROTTLED or answer.status == 429):
                break
            await asyncio.sleep(wait_s)
            answer = await self._asked(operation, content)
        if not answer.ok:
            self._refuse(answer, *_said(answer))
        return answer

    def _refuse(self, answer: Answer, kind: str, words: str) -> None:
        if kind in _OUR_FAULT:
            raise InvalidArguments(f"{self.name} refuses the query: {words or kind}")
        raise refusal(answer, f"{kind}: {words}" if kind else "")

    async def _asked(self, operation: str, content: bytes) -> Answer:
        service = self._service
        headers = {
            "content-type": f"application/x-amz-json-{service.version}",
            "x-amz-target": f"{service.target}.{operation}",
        }
        try:
            key = await self._credentials.key()
        except AdapterError as error:
            raise CapabilityUnavailable(f"{self.name}: {error.message}") from error
        signature = signed_headers(
            key,
            region=self._region,
            service=service.signed_as,
            url=self._url,
            body=content,
            headers=headers,
        )
        return await self._backend.post_json("", content, {**headers, **signature})


def _said(answer: Answer) -> tuple[str, str]:
    try:
        failure = _Failure.model_validate_json(answer.body)
    except ValidationError:
        return "", ""
    return failure.type.rpartition("#")[2], failure.message or failure.spelled_large


def unreadable(name: str, answer: Answer) -> UpstreamFailed:
    """What to raise for a success that is not what the API promises."""
    return UpstreamFailed(f"{name}: not the answer that its API promises", answer.status)
