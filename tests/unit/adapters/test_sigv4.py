"""Request signing, against AWS's published example requests and keys."""

from datetime import UTC, datetime
from typing import Any

from adapters.sigv4 import AwsKey, signed_headers

# The keys and the moment of AWS's signature test suite.
KEY = AwsKey("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
MOMENT = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)


def sign(key: AwsKey = KEY, path: str = "/", body: bytes = b"", **headers: Any) -> dict[str, str]:
    return signed_headers(
        key,
        region="us-east-1",
        service="service",
        host="example.amazonaws.com",
        path=path,
        body=body,
        headers=headers,
        now=MOMENT,
    )


def test_a_post_is_signed_as_in_the_published_suite() -> None:
    assert sign() == {
        "x-amz-date": "20150830T123600Z",
        "authorization": "AWS4-HMAC-SHA256 "
        "Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        "SignedHeaders=host;x-amz-date, "
        "Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    }


def test_a_post_with_a_header_is_signed_as_in_the_published_suite() -> None:
    header: dict[str, Any] = {"my-header1": "value1"}
    signed = sign(**header)
    assert signed["authorization"].endswith(
        "SignedHeaders=host;my-header1;x-amz-date, "
        "Signature=c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"
    )


def test_a_temporary_key_sends_and_signs_its_token() -> None:
    signed = sign(AwsKey(KEY.access_key_id, KEY.secret_access_key, "TOKEN"))
    assert signed["x-amz-security-token"] == "TOKEN"
    assert "SignedHeaders=host;x-amz-date;x-amz-security-token" in signed["authorization"]


def test_path_body_and_secret_each_change_the_signature() -> None:
    other_key = AwsKey(KEY.access_key_id, "another")
    signatures = {
        sign()["authorization"],
        sign(path="/model/a%3A0/converse")["authorization"],
        sign(body=b"{}")["authorization"],
        sign(other_key)["authorization"],
    }
    assert len(signatures) == 4


def test_a_key_shows_no_secret() -> None:
    assert "wJalr" not in repr(KEY)
