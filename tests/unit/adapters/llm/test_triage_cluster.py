"""Findings of Kubernetes in an answer: the suspects, the certainty, the full text, and a shared
server.
"""

import re
from collections.abc import Mapping, Sequence

import pytest

from tests.fixtures_triage import Investigation, investigate, world
from tools.core.cluster_reading import NOT_READ_BESIDE

PRODUCTS = (
    "checkout",
    "cart",
    "payments",
    "stock",
    "ledger-db",
    "stock-db",
    "alpha-sql",
    "beta-sql",
)
LONG = (
    "at 14:07:23 quota small of namespace shop: "
    + "requested pods=1, used pods=9, limited to pods=9; " * 4
)


def ill(product: str, mechanism: str = "exceeded quota", **more: object) -> dict[str, object]:
    return {
        "kind": "Deployment",
        "name": product,
        "product": product,
        "state": "FailedCreate",
        "mechanism": mechanism,
        "impact": "down",
        "detail": f"Deployment {product}: {mechanism}",
        **more,
    }


def line(product: str, example: str, after: int = 9) -> dict[str, object]:
    return {
        "product": product, "level": "error", "change": "new", "before": 0, "after": after,
        "expected": 0.0, "example": example, "since": "2026-04-07T14:10:00Z",
    }  # fmt: skip


async def asked(
    found: Sequence[Mapping[str, object]] = (),
    lines: Sequence[Mapping[str, object]] = (),
    **more: object,
) -> Investigation:
    sweep = {"ill": list(found), "warnings": [], "pods": {}, "nodes": "2 of 2 ready", **more}
    logs = {"changes": list(lines), "lines": {}}
    around = {"sweep_cluster": sweep, "error_patterns": logs}
    return await investigate(world(around=around), "what is wrong?", PRODUCTS)


def verdict(found: Investigation) -> tuple[object, list[object]]:
    stated = found.asked("core__report_findings")[-1]
    return stated["verdict"], [one["product"] for one in stated["suspects"]]


async def test_the_reason_is_shown_to_its_end() -> None:
    found = await asked([ill("cart", detail=f"{LONG}the end of it")])

    assert "the end of it [E" in found.text
    assert found.marks == ()


@pytest.mark.parametrize(
    ("impact", "expected"),
    [("down", "cause"), ("degraded", "cause"), ("unsure", "unknown")],
)
async def test_a_verdict_is_as_certain_as_its_finding(impact: str, expected: str) -> None:
    found = await asked([ill("cart", impact=impact)])

    assert verdict(found)[0] == expected


async def test_an_object_that_is_down_comes_before_a_crash_it_may_cause() -> None:
    crash = ill("cart", "container crashes", kind="Pod", state="CrashLoopBackOff")
    claim = ill("stock-db", "StorageClass not found", kind="PersistentVolumeClaim")
    found = await asked([crash, claim], [line("cart", "no answer")])

    assert verdict(found)[1][0] == "stock-db"


async def test_a_lost_node_comes_before_the_pods_on_it() -> None:
    node = ill("", "kubelet does not report", kind="Node", name="alpha", state="NotReady")
    found = await asked([ill("cart"), ill("payments"), node])

    assert verdict(found)[1][0] == "alpha"


REFUSED = "SQLException: Too many connections"
READ_ONLY = (
    "2026-04-07 14:11:23.794 ERROR 1 : The MySQL server is running with the --read-only option"
)


def store(product: str, technology: str, *, is_new: bool = False) -> dict[str, object]:
    return {"product": product, "technology": technology, "is_new": is_new}


STORES = [store("ledger-db", "postgres"), store("stock-db", "mysql")]
TWINS = [store("alpha-sql", "mysql"), store("beta-sql", "mysql")]
RENEWED = [store("alpha-sql", "mysql"), store("beta-sql", "mysql", is_new=True)]


@pytest.mark.parametrize(
    ("lines", "stores", "server", "words"),
    [
        ([line("cart", READ_ONLY), line("payments", READ_ONLY)], STORES, "stock-db", "read-only"),
        (
            [line("cart", REFUSED), line("payments", REFUSED), line("ledger-db", REFUSED)],
            STORES, "ledger-db", "too many connections",
        ),
        (
            [line("cart", "FATAL: sorry, too many clients already"), line("stock", REFUSED)],
            [store("ledger-db", "postgres")], "ledger-db", "too many connections",
        ),
        (
            [line("cart", READ_ONLY), line("payments", READ_ONLY)],
            RENEWED, "beta-sql", "read-only",
        ),
    ],
)  # fmt: skip
async def test_a_server_that_refuses_several_products_is_the_cause(
    lines: list[dict[str, object]], stores: list[dict[str, object]], server: str, words: str
) -> None:
    found = await asked(lines=lines, datastores=stores)

    assert verdict(found)[1][0] == server
    assert words in found.text
    assert found.marks == ()


@pytest.mark.parametrize(
    ("lines", "stores"),
    [
        ([line("cart", READ_ONLY)], STORES),
        ([line("cart", READ_ONLY), line("payments", READ_ONLY)], []),
        (
            [line("cart", READ_ONLY), line("payments", READ_ONLY)],
            TWINS,
        ),
    ],
    ids=["one product", "no data store", "two that fit"],
)
async def test_a_server_is_not_guessed(
    lines: list[dict[str, object]], stores: list[dict[str, object]]
) -> None:
    found = await asked(lines=lines, datastores=stores)

    assert set(map(str, verdict(found)[1])) <= {"cart", "payments"}


async def test_an_unread_kind_prevents_the_all_clear() -> None:
    found = await asked(unread=["services could not be read: forbidden"])

    assert verdict(found)[0] == "unknown"
    assert "services could not be read" in found.text


async def test_a_finding_brings_no_markup_link_or_mention_into_an_answer() -> None:
    hostile = "x\n# Title\n<@U1> <!channel> https://evil.example/x :tada: *b* `c` [E9] @here"
    found = await asked([ill("cart", detail=hostile, state=hostile, name=hostile)])

    (told,) = [one for one in found.text.splitlines() if "Title" in one and one.startswith("-")]
    assert re.search(r"[<>@*`#]|://|:tada:|\[E9\]", told) is None


async def test_an_answer_states_the_kinds_that_were_not_read_while_a_product_is_down() -> None:
    found = await asked([ill("checkout")], unread=[NOT_READ_BESIDE])

    stated = found.asked("core__report_findings")[-1]
    assert stated["verdict"] == "cause"
    assert f"Kubernetes: {NOT_READ_BESIDE}" in stated["missing"]
