"""What the service of this configuration says of itself, asked from its own host."""

from typing import Final

import httpx

from adapters.errors import AdapterError
from adapters.http import check_status, http_client, mapped_errors
from bot.settings.model import HttpSettings

TIMEOUT_S: Final = 2.0  # the service is on this machine; a slow one is as good as none


async def asked(http: HttpSettings, path: str) -> bytes | None:
    """The body of its answer; None when nobody runs here, or there is no `[http] api_token`."""
    token = http.api_token.get_secret_value()
    if not token:
        return None
    here = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(http.host, http.host)  # noqa: S104 - compared, not bound
    client = http_client(
        base_url=f"http://{here}:{http.port}",
        headers={"authorization": f"Bearer {token}"},
        connect_s=TIMEOUT_S,
        read_s=TIMEOUT_S,
    )
    try:
        with mapped_errors("the service"):
            response: httpx.Response = await client.get(path)
        check_status(response)
        return response.content
    except AdapterError:
        return None
    finally:
        await client.aclose()
