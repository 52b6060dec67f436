"""Which backend a channel looks at: its name, its products, the default, or none and why."""

from typing import Any

import pytest

from bot.app.backend_selection import Picks, named_tables, picks, picks_of
from bot.domain.channel import CLOSED, UNMATCHED, ChannelRule, ChosenBackends
from bot.settings.observe import ObserveSettings
from tools.products import Reading

LOKI = {"kind": "loki", "url": "http://loki"}
LOGS: dict[str, Any] = {
    **LOKI,
    "eu": {**LOKI, "products": ["shop", "cart"]},
    "us": {**LOKI, "products": ["us-shop"]},
}
OBSERVE = ObserveSettings.model_validate(
    {"logs": LOGS, "traces": {"kind": "tempo", "url": "http://tempo"}}
)


def rule(*products: str, backends: str = "", **more: Any) -> ChannelRule:
    chosen = ChosenBackends(backends, backends, backends)
    return ChannelRule("*", products=products, backends=chosen, **more)


@pytest.mark.parametrize(
    ("of", "logs"),
    [
        (rule(backends="eu"), "eu"),
        (rule("us-shop", backends="eu"), "eu"),
        (rule(backends="default"), "default"),
        (rule("shop", "cart"), "eu"),
        (rule("shop", "cart", reading=Reading.ALL), "eu"),
        (rule("other"), "default"),
        (rule(), "default"),
        (rule("*"), "default"),
        (UNMATCHED, "default"),
        (rule("shop", "us-shop"), "none (the channel's products are of several logs backends"),
        (rule("shop", "other"), "none (the channel's products are of several logs backends"),
        (rule(backends="gone"), "none (there is no [observe.logs.gone]"),
        (rule(shut=True), "none (no product is this channel's"),
    ],
)
def test_the_channels_rule_decides_the_backend(of: ChannelRule, logs: str) -> None:
    assert str(picks_of(OBSERVE, of).logs).startswith(logs)


def test_an_unknown_name_of_a_family_does_not_use_its_default() -> None:
    chosen = picks_of(OBSERVE, rule(backends="eu"))

    assert str(chosen.traces) == "none (there is no [observe.traces.eu])"
    assert str(chosen.metrics) == "default"  # no configured backend could be meant instead
    assert not chosen.are_known


@pytest.mark.parametrize(
    ("of", "tables"),
    [
        (rule(backends="eu"), (("logs", "observe.logs.eu"),)),
        (rule("us-shop"), (("logs", "observe.logs.us"),)),
        (rule("other"), ()),
        (rule("shop", "us-shop"), ()),
    ],
    ids=["named", "by product", "default", "ambiguous"],
)
def test_the_table_of_a_selected_backend_is_reported(
    of: ChannelRule, tables: tuple[tuple[str, str], ...]
) -> None:
    assert named_tables(OBSERVE, [of], "incident-checkout") == tables


EU, US = rule(backends="eu"), rule(backends="us")


@pytest.mark.parametrize(
    ("rules", "logs"),
    [
        ((), "default"),
        ((EU,), "none (the channel's name cannot be read"),
        ((rule(backends="default"),), "default"),
        ((EU, *CLOSED), "eu"),
        ((EU, US, *CLOSED), "none (the channel's name cannot be read"),
        (CLOSED, "none ("),
    ],
    ids=["no rules", "one or unmatched", "agreed", "its tenant's alone", "two", "closed"],
)
def test_a_channel_without_a_name_uses_the_common_backend(
    rules: tuple[ChannelRule, ...], logs: str
) -> None:
    assert str(picks(OBSERVE, rules, "").logs).startswith(logs)


def test_without_named_backends_every_channel_uses_the_default() -> None:
    one = ObserveSettings.model_validate({"logs": LOKI})

    assert {picks(one, (EU, *CLOSED), each) for each in ("a", "")} != {Picks()}
    assert {picks(one, (rule("shop"), rule("cart"), *CLOSED), each) for each in ("a", "")} == {
        Picks()
    }
