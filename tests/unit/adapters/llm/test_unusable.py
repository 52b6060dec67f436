"""With any key and any address a provider says that it cannot be used, or it answers."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.llm.config import ProviderConfig
from adapters.llm.messages import CompleteRequest, ErrorChunk, Message, Role, StreamChunk
from adapters.llm.registry import ClosableProvider, create, known

QUESTION = CompleteRequest(system="", messages=(Message(Role.USER, "ok?"),))
NOWHERE = "http://127.0.0.1:9"
AWS = {"access_key_id": "a", "secret_access_key": "b"}
PASSWORD = "hunter2"
KEYS = st.text(min_size=1) | st.sampled_from(
    [
        "sk-1\n",
        "sk-1\r\nx-evil: 1",
        "sk\u00e9",
        "\u00a0sk",
        "sk\x00",
        "sk\u2028",
        "\ud800",
        "s k",
        "\t",
    ]
)
ADDRESSES = st.text() | st.sampled_from(
    ["http://[::1", "http://h:99999", "http://\ud800", "http://\u00e9", "http://h\nx", "https://",
     "http://xn--a", "http://" + "a" * 300, "http://h/\u00e9", "http://h/?a=\u00e9#f", "//", "@", ":"]
)  # fmt: skip


async def _one_round(provider: ClosableProvider) -> list[StreamChunk]:
    try:
        return [chunk async for chunk in provider.stream(QUESTION)]
    finally:
        await provider.aclose()


@pytest.mark.parametrize("name", known())
@settings(max_examples=40)
@given(key=KEYS)
def test_any_key_ends_in_an_error_chunk_only(name: str, key: str) -> None:
    provider = create(ProviderConfig(name, api_key=key, base_url=NOWHERE, model="m"))
    chunks = asyncio.run(_one_round(provider))
    assert isinstance(chunks[-1], ErrorChunk)
    sendable = key.isascii() and key.isprintable()
    assert sendable or provider.unavailable_reason is not None


@pytest.mark.parametrize("field", ["access_key_id", "secret_access_key", "session_token", "region"])
@settings(max_examples=25)
@given(key=KEYS)
def test_any_part_of_an_aws_key_ends_in_an_error_chunk_only(field: str, key: str) -> None:
    config = ProviderConfig("bedrock", base_url=NOWHERE, model="m", extra={**AWS, field: key})
    assert isinstance(asyncio.run(_one_round(create(config)))[-1], ErrorChunk)


@pytest.mark.parametrize("name", known())
@settings(max_examples=60)
@given(address=ADDRESSES)
def test_no_address_breaks_the_start(name: str, address: str) -> None:
    provider = create(ProviderConfig(name, api_key="k", base_url=address))
    assert provider.unavailable_reason is None or provider.unavailable_reason.isprintable()
    asyncio.run(provider.aclose())


@pytest.mark.parametrize("name", known())
@pytest.mark.parametrize(
    "address",
    [f"http://me:{PASSWORD}@127.0.0.1:9", f"me:{PASSWORD}@127.0.0.1:9", f"https://{PASSWORD}@h",
     f"http://me:{PASSWORD}@[bad", f"ftp://me:{PASSWORD}@h"],
)  # fmt: skip
def test_an_address_with_a_password_is_refused_without_an_echo(name: str, address: str) -> None:
    provider = create(ProviderConfig(name, api_key="k", base_url=address, model="m"))
    (end,) = asyncio.run(_one_round(provider))
    assert isinstance(end, ErrorChunk)
    assert "base_url" in (provider.unavailable_reason or "")
    assert PASSWORD not in f"{provider.unavailable_reason}{end}"
