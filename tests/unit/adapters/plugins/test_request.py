"""Any argument stays in its place of the URL."""

from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.plugins.manifest import Endpoint
from adapters.plugins.tool import placed
from tools.errors import InvalidArguments

ISSUE = Endpoint(url="http://bridge/issues/{key}/notes?by={who}")


@pytest.mark.parametrize("key", ["../../admin", "..", ".", "a/../../b", "..\\admin", ""])
def test_a_path_argument_cannot_traverse(key: str) -> None:
    with pytest.raises(InvalidArguments):
        placed(ISSUE, {"key": key, "who": "me"})


def test_two_arguments_cannot_traverse_together() -> None:
    with pytest.raises(InvalidArguments):
        placed(Endpoint(url="http://bridge/x/{a}{b}"), {"a": ".", "b": "."})


@given(key=st.text(min_size=1), who=st.text(), more=st.text())
def test_an_argument_stays_in_its_place(key: str, who: str, more: str) -> None:
    try:
        url, body = placed(ISSUE, {"key": key, "who": who, "more": more})
    except InvalidArguments:
        return
    parts = urlsplit(url)

    assert (parts.scheme, parts.netloc, parts.fragment, body) == ("http", "bridge", "", None)
    assert [unquote(step) for step in parts.path.split("/")] == ["", "issues", key, "notes"]
    assert parse_qs(parts.query, keep_blank_values=True) == {"by": [who], "more": [more]}
    assert url.isascii()
    assert url.isprintable()


def test_a_post_sends_the_other_arguments_as_json() -> None:
    search = Endpoint(url="http://bridge/search/{kind}", method="POST", read_only=True)

    assert placed(search, {"kind": "bug", "limit": 3, "open": True}) == (
        "http://bridge/search/bug",
        {"limit": 3, "open": True},
    )
