"""Addresses as operators write them, and providers made from configuration."""

import pytest

from adapters.llm.config import ProviderConfig, endpoint
from adapters.llm.model_table import ModelOverride
from adapters.llm.ollama.provider import address
from adapters.llm.port import Price
from adapters.llm.registry import create, known


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/", "https://api.openai.com/v1/chat/completions"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1/chat/completions"),
        (" api.openai.com ", "https://api.openai.com/v1/chat/completions"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
        ("https://gateway/llm", "https://gateway/llm/v1/chat/completions"),
        ("https://host/v4/chat/completions", "https://host/v4/chat/completions"),
        ("http://h:8080/v1beta", "http://h:8080/v1beta/chat/completions"),
        (
            "https://x.azure.com/openai/v1?api-version=1",
            "https://x.azure.com/openai/v1/chat/completions?api-version=1",
        ),
    ],
)
def test_a_base_url_of_any_form_reaches_the_resource(base_url: str, url: str) -> None:
    assert str(endpoint(base_url, "v1", "chat/completions")) == url


@pytest.mark.parametrize(
    "base_url", ["ftp://host", "https://", "http://host:port", "file:///etc/passwd"]
)
def test_an_invalid_base_url_makes_a_provider_unavailable(base_url: str) -> None:
    assert endpoint(base_url, "v1", "messages") is None
    provider = create(ProviderConfig("anthropic", api_key="k", base_url=base_url))
    assert "base_url" in (provider.unavailable_reason or "")


@pytest.mark.parametrize(
    ("base_url", "root"),
    [
        ("http://gpu:11434", "http://gpu:11434/"),
        ("http://gpu:11434/api/", "http://gpu:11434/"),
        ("https://gpu/ollama/v1", "https://gpu/ollama/"),
        ("gpu", "http://gpu:11434/"),
        ("127.0.0.1:4000", "http://127.0.0.1:4000/"),
    ],
)
def test_an_ollama_address_may_have_ollamas_form(base_url: str, root: str) -> None:
    assert str(address(base_url)) == root


def test_every_known_provider_can_be_made_without_a_key() -> None:
    assert known() == ["anthropic", "openai", "ollama", "bedrock", "nirmata"]
    assert [create(ProviderConfig(name)).name for name in known()] == known()


def test_an_unknown_provider_lists_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"'bard'; known: anthropic"):
        create(ProviderConfig("bard"))


def test_the_key_is_not_in_the_representation() -> None:
    assert "hunter2" not in repr(ProviderConfig("openai", api_key="hunter2"))


def test_a_self_hosted_server_needs_no_key() -> None:
    provider = create(ProviderConfig("openai", base_url="http://llama:8080/v1"))
    assert provider.unavailable_reason is None


@pytest.mark.parametrize(
    ("config", "local"),
    [
        (ProviderConfig("ollama"), True),
        (ProviderConfig("ollama", base_url="https://ollama.com"), False),
        (ProviderConfig("ollama", model="gpt-oss:120b-cloud"), False),
        (ProviderConfig("ollama", base_url="http://gpu:11434", extra={"local": False}), False),
        (ProviderConfig("openai", base_url="http://llama:8080"), False),
        (ProviderConfig("openai", base_url="http://llama:8080", extra={"local": True}), True),
        (ProviderConfig("anthropic"), False),
    ],
)
def test_only_private_addresses_count_as_local(config: ProviderConfig, local: bool) -> None:
    assert create(config).is_local is local


def test_a_local_model_is_free_and_a_cloud_model_behind_it_has_no_price() -> None:
    provider = create(ProviderConfig("ollama", model="qwen3"))
    assert provider.price_of("qwen3") == Price(0, 0, 0, 0)
    assert provider.price_of("gpt-oss:120b-cloud") is None


def test_the_context_size_comes_from_the_table_unless_configured() -> None:
    assert create(ProviderConfig("openai", model="gpt-4o")).max_context_tokens == 128_000
    own = ProviderConfig(
        "openai", model="gpt-4o", models={"gpt-4o": ModelOverride(context_tokens=9000)}
    )
    assert create(own).max_context_tokens == 9000
    assert create(ProviderConfig("ollama", extra={"num_ctx": 4096})).max_context_tokens == 4096
