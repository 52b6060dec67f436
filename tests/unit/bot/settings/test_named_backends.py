"""Several backends of a kind by name, and what cannot be meant by one."""

import re

import pytest

from bot.settings.reading import ConfigurationError, parse

TWO = """[observe.logs]
kind = "loki"
url = "http://default"
headers = { X-A = "1" }
[observe.logs.eu]
kind = "loki"
url = "http://eu"
products = ["shop"]
[observe.metrics.eu]
kind = "prometheus"
url = "http://prometheus.eu"
[observe.metrics.eu.signals.queue]
role = "queue"
"""


def test_tables_within_a_family_are_backends_by_name() -> None:
    observe = parse(TWO, "k.toml", {}).observe

    assert observe.logs.url == "http://default"
    assert [*observe.logs.named] == [*observe.metrics.named] == ["eu"]
    assert observe.logs.named["eu"].products == ("shop",)
    assert observe.metrics.kind == "none"
    assert observe.metrics.named["eu"].signals["queue"].role == "queue"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("[observe.logs.eu]\nurl = 'x'", "1: observe.logs.eu: kind: a named backend"),
        ("[observe.logs.eu]\nkind = 'recorded'", "1: observe.logs.eu: kind: a named backend"),
        ("[observe.logs.eu]\nkind = 'loki'\nurll = 'x'", "3: observe.logs.eu.urll: unknown key"),
        ("[observe.logs.eu]\nkind = 'lokki'", "2: observe.logs.eu.kind: must be"),
        ("[observe.logs.EU]\nkind = 'loki'", "1: observe.logs.EU.[key]"),
        ("[observe.logs.default]\nkind = 'loki'", "1: observe.logs: 'default' is the table"),
        ("[observe.logs]\nurll = 'x'", "2: observe.logs.urll: unknown key; did you mean url"),
        (
            "[observe.errors]\nkind = 'sentry'\norganization = 'a'",
            "1: observe.errors: needs an add",
        ),
        ("[observe.errors]\nkind = 'sentry'\nurl = 'x'", "1: observe.errors: needs the `organ"),
        ("[observe.errors]\norganization = '../x'", "2: observe.errors.organization: "),
        ("[observe.errors]\nprojects = { shop = ['a/b'] }", "2: observe.errors.projects"),
        ("[observe.errors]\nprojects = { shop = [] }", "2: observe.errors.projects"),
        ("[observe.errors.eu]\nurl = 'x'", "1: observe.errors.eu: kind: a named backend"),
        (
            "[observe.errors.eu]\nkind = 'sentry'\nurl = 'x'\norganization = 'a'\n"
            "projects = { shop = ['web'] }\nproducts = ['shop']\n"
            "[observe.errors.us]\nkind = 'sentry'\nurl = 'x'\norganization = 'a'\n"
            "products = ['shop']",
            "11: observe.errors.us.products: 'shop' already uses [observe.errors.eu]",
        ),
        (
            "[observe.logs.eu]\nkind = 'loki'\ntenant = 'a'\nheaders = { x-scope-orgid = 'b' }",
            "1: observe.logs.eu: tenant is sent as",
        ),
        (
            TWO + "[observe.logs.us]\nkind = 'loki'\nproducts = ['shop']",
            "16: observe.logs.us.products: 'shop' already uses [observe.logs.eu]",
        ),
        (
            TWO + "[[channels]]\nmatch = 'a'\nbackends = 'us'",
            "16: channels.backends: there is no [observe.logs.us]",
        ),
        (
            TWO + "[[channels]]\nmatch = 'a'\nbackends = { traces = 'eu' }",
            "16: channels.backends: there is no [observe.traces.eu]",
        ),
        ("[[channels]]\nmatch = 'a'\nbackends = 3", "3: channels.0.backends"),
    ],
)
def test_an_ambiguous_table_is_refused_by_its_line(text: str, refused: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(f"k.toml:{refused}")):
        parse(text, "k.toml", {})


def test_secrets_of_a_named_backend_are_masked() -> None:
    text = TWO + "[observe.traces.eu]\nkind = 'tempo'\ntoken = 'of-traces-eu-1'"

    assert "of-traces-eu-1" in parse(text, "k.toml", {}).secrets()


@pytest.mark.parametrize("backends", ["'eu'", "'default'", "{ logs = 'eu' }", "{}"])
def test_a_channel_names_one_backend_for_all_or_one_for_each(backends: str) -> None:
    channel = f"{TWO}[[channels]]\nmatch = 'a'\nbackends = {backends}"

    assert len(parse(channel, "k.toml", {}).channels) == 1
