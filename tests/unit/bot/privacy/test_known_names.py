"""The operator's own names that look like an address are not masked."""

import pytest

from bot.privacy.redactor import TextRedactor

PRODUCT = "orders@db.example.com_SQL"


@pytest.fixture(scope="module")
def redactor() -> TextRedactor:
    return TextRedactor(["s3cret-of-the-operator"], b"key", known=[PRODUCT, "cart"])


@pytest.mark.parametrize(
    "text",
    [PRODUCT, f"the way to {PRODUCT} is slow", f'{{"product":"{PRODUCT}"}}', f"{PRODUCT}: 2 s"],
)
def test_a_known_name_is_not_masked(redactor: TextRedactor, text: str) -> None:
    assert redactor.redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "orders@db.example.com",
        "ana@example.com",
        f"x{PRODUCT}",
        f"mail.{PRODUCT}",
        "wrote to orders@db.example.com about cart",
    ],
)
def test_any_other_address_is_masked(redactor: TextRedactor, text: str) -> None:
    assert "[redacted:email" in redactor.redact(text)


def test_a_secret_in_a_known_name_is_masked() -> None:
    hiding = "a@s3cret-of-the-operator.example.com"
    redactor = TextRedactor(["s3cret-of-the-operator"], b"key", known=[hiding])

    assert "s3cret" not in redactor.redact(hiding)
