"""The signature of a webhook's body, as GitHub and Flux write it: `sha256=` and the HMAC in hex."""

import hashlib
import hmac


def is_signed(header: str, body: bytes, secret: str) -> bool:
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(header.encode("utf-8", "replace"), expected.encode())
