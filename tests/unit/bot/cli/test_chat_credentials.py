"""Where `kortex chat` finds the service and the token, and what it refuses."""

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.cli.chat.command import (
    TOKEN_VARIABLE,
    URL_VARIABLE,
    USUAL_URL,
    Unusable,
    address,
    chat,
    token,
    where,
)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "kortex",
        "ftp://kortex",
        "http://kortex.example.com",
        "https://user:pw@kortex",
        "http://[",
    ],
)
def test_an_address_unsafe_for_a_token_is_refused(url: str) -> None:
    with pytest.raises(Unusable, match="--url"):
        address(url)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:3000", "http://[::1]:1", "https://k.example.com/"]
)
def test_a_safe_address_is_accepted(url: str) -> None:
    assert address(url) == url.rstrip("/")


def test_the_token_file_comes_before_the_variable(
    tmp_path: Path,
) -> None:
    file = tmp_path / "token"
    file.write_text("kortex_file\n")
    file.chmod(0o600)

    assert token(file, {TOKEN_VARIABLE: "kortex_env"}) == "kortex_file"
    assert token(None, {TOKEN_VARIABLE: "kortex_env"}) == "kortex_env"


@pytest.mark.parametrize(
    ("held", "mode", "words"),
    [
        ("kortex_x", 0o644, "chmod 600"),
        ("", 0o600, "holds no token"),
        ("a\nb", 0o600, "holds no token"),
        ("x" * 20_000, 0o600, "holds no token"),
    ],
)
def test_an_unusable_token_file_is_refused_with_the_reason(
    tmp_path: Path, held: str, mode: int, words: str
) -> None:
    file = tmp_path / "token"
    file.write_text(held)
    file.chmod(mode)

    with pytest.raises(Unusable, match=words):
        token(file, {})


def test_a_missing_token_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(Unusable, match="kortex token create"):
        token(None, {})


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "kortex.toml"
    file.write_text("[http]\nport = 4000\n")
    return file


@pytest.mark.parametrize(
    ("url", "env", "found"),
    [
        ("https://k.example.com", {URL_VARIABLE: "https://v.example.com"}, "https://k.example.com"),
        (None, {URL_VARIABLE: "https://v.example.com/"}, "https://v.example.com"),
        (None, {URL_VARIABLE: " "}, "http://127.0.0.1:4000"),
        (None, {}, "http://127.0.0.1:4000"),
    ],
)
def test_the_url_comes_from_the_flag_the_variable_or_the_file(
    config: Path, url: str | None, env: dict[str, str], found: str
) -> None:
    assert where(url, config, env, pytest.fail) == found


@pytest.mark.parametrize(
    ("http", "found"),
    [
        ("", "http://127.0.0.1:3000"),
        ("host = '0.0.0.0'\nport = ${PORT}", "http://127.0.0.1:4001"),
        ("host = '::'", "http://[::1]:3000"),
        ("host = '::1'", "http://[::1]:3000"),
        ("host = 'localhost'", "http://localhost:3000"),
    ],
)
def test_the_configuration_gives_this_machines_service(config: Path, http: str, found: str) -> None:
    config.write_text(f"[http]\n{http}".replace("${PORT}", '"${PORT}"'))

    assert where(None, config, {"PORT": "4001"}, pytest.fail) == found


def test_without_a_configuration_the_default_address_is_used(tmp_path: Path) -> None:
    assert where(None, tmp_path / "kortex.toml", {}, pytest.fail) == USUAL_URL


@pytest.mark.parametrize(
    ("http", "words"),
    [("port = 'x'", "http.port"), ("port = 0", "port = 0 changes at each start")],
)
def test_a_configuration_without_an_address_is_reported_and_the_default_used(
    config: Path, http: str, words: str
) -> None:
    config.write_text(f"[http]\n{http}\n")
    told: list[str] = []

    assert where(None, config, {}, told.append) == USUAL_URL

    assert words in told[0]
    assert told[0].endswith(f"; asking {USUAL_URL}")


def test_a_host_reachable_by_others_requires_tls(config: Path) -> None:
    config.write_text("[http]\nhost = '10.0.0.5'\n")

    with pytest.raises(Unusable, match=r"\[http\] of .*; name another with --url: use https"):
        where(None, config, {}, pytest.fail)


def test_a_service_that_does_not_run_is_reported_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    settings = {TOKEN_VARIABLE: "k_0123456789abcdef"}

    ran = CliRunner().invoke(chat, ["--url", f"http://127.0.0.1:{port}"], env=settings)

    assert "Start it with `kortex run`, or name its address with --url" in ran.stderr
