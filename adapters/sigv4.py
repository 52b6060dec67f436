"""AWS Signature Version 4 for one POST with a body (docs.aws.amazon.com, "Create a signed request").

For whoever asks AWS (Bedrock, CloudWatch): no query, no chunked payload.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

_ALGORITHM: Final = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class AwsKey:
    """A pair of access keys; `session_token` only with temporary ones."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


def signed_headers(
    key: AwsKey,
    *,
    region: str,
    service: str,
    host: str,
    path: str,
    body: bytes,
    headers: Mapping[str, str],
    now: datetime,
) -> dict[str, str]:
    """The headers to add to a POST of `body` to `path` (encoded, exactly as sent) on `host`.

    `headers` are those that will be sent and must be covered, by lower-case name. `now` may be in
    any zone; AWS refuses one that is off by more than five minutes.
    """
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    added = {"x-amz-date": stamp}
    if key.session_token:
        added["x-amz-security-token"] = key.session_token
    covered = dict(sorted({"host": host, **headers, **added}.items()))
    names = ";".join(covered)
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    request = "\n".join(
        [
            "POST",
            quote(path, safe="/-_.~"),  # all services but S3 encode the encoded path once more
            "",
            *(f"{name}:{' '.join(value.split())}" for name, value in covered.items()),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        ]
    )
    to_sign = "\n".join([_ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()])
    secret = f"AWS4{key.secret_access_key}".encode()
    for part in (*scope.split("/"), to_sign):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    credential = f"Credential={key.access_key_id}/{scope}"
    return {
        **added,
        "authorization": f"{_ALGORITHM} {credential}, SignedHeaders={names}, Signature={secret.hex()}",
    }
