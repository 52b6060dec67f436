"""A selector alone: names as they stand, and quoted as Prometheus 3 quotes names of other signs."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.observe.selector_query import name_and_labels
from tools.errors import InvalidArguments

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("up", ("up", {})),
        ('up{service="checkout"}', ("up", {"service": "checkout"})),
        (' trace.http.requests { env = "prod" , } ', ("trace.http.requests", {"env": "prod"})),
        ('{"http.requests","service.name"="web"}', ("http.requests", {"service.name": "web"})),
        ('{"k8s.pod.name"="web-1","http.requests"}', ("http.requests", {"k8s.pod.name": "web-1"})),
        ('{__name__="http.requests"}', ("http.requests", {})),
        ('up{"service.name"="a }, \\" b"}', ("up", {"service.name": 'a }, " b'})),
    ],
)
def test_a_selector_is_a_name_and_its_labels(text: str, found: object) -> None:
    assert name_and_labels(text) == found


@given(NAMES, st.dictionaries(NAMES.filter(lambda name: name != "__name__"), NAMES, max_size=3))
def test_any_quoted_name_and_label_is_read(name: str, labels: dict[str, str]) -> None:
    parts = [json.dumps(name), *(f"{json.dumps(k)}={json.dumps(v)}" for k, v in labels.items())]
    assert name_and_labels(f"{{{', '.join(parts)}}}") == (name, labels)


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "rate(up[5m])", "errors/requests", "a-b", "up + up", 'up{service=~"web"}', "up{",
        'up{"service"}', 'up{a="b" c="d"}', '{"up", "down"}', 'up{a="b}', '{"\\x"}',
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidArguments, match="only a selector"):
        name_and_labels(text)
