"""AWS Signature Version 4, by botocore (the extra `kortex[aws]`)."""

from collections.abc import Mapping

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from adapters.aws.credentials import AwsKey


def signed_headers(
    key: AwsKey, *, region: str, service: str, url: str, body: bytes, headers: Mapping[str, str]
) -> dict[str, str]:
    """The headers to add to a POST of `body` to `url` (encoded, exactly as sent).

    `headers` are sent and must be covered. AWS refuses a clock that is off by five minutes.
    """
    request = AWSRequest("POST", url, headers=dict(headers), data=body)
    credentials = Credentials(key.access_key_id, key.secret_access_key, key.session_token or None)
    SigV4Auth(credentials, service, region).add_auth(request)
    added = {name.lower(): value for name, value in request.headers.items()}
    return {name: value for name, value in added.items() if name not in headers}
