"""Where `kortex chat` finds the service and the token, and what it refuses."""

from pathlib import Path

import pytest

from bot.commands.chat.credentials import TOKEN_VARIABLE, Unusable, address, token


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
def test_an_address_over_which_a_token_may_not_go_is_refused(url: str) -> None:
    with pytest.raises(Unusable, match="--url"):
        address(url)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:3000", "http://[::1]:1", "https://k.example.com/"]
)
def test_an_address_that_will_do(url: str) -> None:
    assert address(url) == url.rstrip("/")


def test_a_token_is_read_from_the_file_that_is_named_before_the_variable(
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
def test_a_file_that_will_not_do_says_why(tmp_path: Path, held: str, mode: int, words: str) -> None:
    file = tmp_path / "token"
    file.write_text(held)
    file.chmod(mode)

    with pytest.raises(Unusable, match=words):
        token(file, {})


def test_without_a_token_it_is_said_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(Unusable, match="kortex token create"):
        token(None, {})
