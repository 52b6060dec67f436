"""Variants of a case change what they say they change, and nothing else."""

import json
from typing import Any

import pytest

from adapters.recorded.packs.archive import CaseFiles
from adapters.recorded.packs.variants import KINDS, Variant, variants_of, varied

POINTS = [[0, 0.25], [60, None], [120, 0.5]]
SERIES = [
    {
        "name": "request_duration_p99",
        "labels": {"app": "cart"},
        "unit": "seconds",
        "points": POINTS,
    },
    {"name": "request_duration_p99", "labels": {"app": "db"}, "unit": "s", "points": POINTS},
    {"name": "calls_bucket", "labels": {"app": "db", "le": "1"}, "unit": None, "points": POINTS},
    {"name": "calls_sum", "labels": {"app": "db"}, "unit": "widgets", "points": POINTS},
]
DOCUMENTS = {
    "case.json": {"id": "c1", "set": "shop", "asked": "is cart slow?", "products": ["cart", "db"]},
    "truth.json": {"healthy": False, "culprit": ["db"], "mechanism_words": [["db"]]},
    "graph.json": {"edges": [["cart", "db"]], "cart": "cart-7f9-x dbx"},
}


def case() -> CaseFiles:
    files = {name: json.dumps(document).encode() for name, document in DOCUMENTS.items()}
    files["metrics.ndjson"] = "\n".join(map(json.dumps, SERIES)).encode()
    files["logs.ndjson"] = json.dumps({"labels": {"app": "db"}, "line": "db: slow"}).encode()
    return CaseFiles("here", files)


def document(found: CaseFiles, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(found.files[name])
    return read


def series(found: CaseFiles) -> list[dict[str, Any]]:
    return [json.loads(line) for line in found.files["metrics.ndjson"].splitlines()]


@pytest.mark.parametrize("kind", KINDS)
def test_variant_has_its_own_id_and_set(kind: str) -> None:
    (variant,) = (one for one in variants_of(KINDS, 1) if one.kind == kind)
    about = document(varied(case(), variant), "case.json")

    assert (about["id"], about["set"]) == (f"c1~{kind}-1", f"shop~{kind}")


@pytest.mark.parametrize("variant", variants_of(KINDS, 2))
def test_same_seed_gives_the_same_files(variant: Variant) -> None:
    assert varied(case(), variant).files == varied(case(), variant).files


def test_dropped_units_occur_once_and_other_kinds_once_per_seed() -> None:
    assert [(one.kind, one.seed) for one in variants_of(("units", "scale"), 3)] == [
        ("units", 1),
        ("scale", 1),
        ("scale", 2),
        ("scale", 3),
    ]


def test_units_are_dropped_and_points_kept() -> None:
    found = series(varied(case(), Variant("units")))

    assert [one.get("unit") for one in found] == [None] * 4
    assert [one["points"] for one in found] == [POINTS] * 4


@pytest.mark.parametrize("seed", range(1, 6))
def test_each_metric_has_one_invented_name_and_keeps_its_part_of_a_histogram(seed: int) -> None:
    first, second, bucket, total = (
        str(one["name"]) for one in series(varied(case(), Variant("metrics", seed)))
    )

    assert first == second
    assert "duration" not in first
    assert "99" in first
    assert bucket.removesuffix("_bucket") == total.removesuffix("_sum")
    assert "calls" not in bucket


def test_seeds_invent_different_names() -> None:
    names = {str(series(varied(case(), Variant("metrics", seed)))[2]["name"]) for seed in (1, 2)}

    assert len(names) == 2


@pytest.mark.parametrize("seed", range(1, 6))
def test_values_are_converted_with_their_unit_for_every_replica(seed: int) -> None:
    factors = {"milliseconds": 1e3, "microseconds": 1e6, "minutes": 1 / 60}
    first, second, *others = series(varied(case(), Variant("scale", seed)))
    factor = factors[str(first["unit"])]

    assert first["unit"] == second["unit"]
    assert first["points"] == [[0, 0.25 * factor], [60, None], [120, 0.5 * factor]]
    assert others == SERIES[2:]


def test_products_have_new_names_everywhere_except_in_the_truth() -> None:
    found = varied(case(), Variant("products", 3))
    cart, database = document(found, "case.json")["products"]
    truth = document(found, "truth.json")

    assert not {cart, database} & {"cart", "db"}
    assert document(found, "case.json")["asked"] == f"is {cart} slow?"
    assert (truth["culprit"], truth["mechanism_words"]) == ([database], [["db"]])
    assert document(found, "graph.json") == {
        "edges": [[cart, database]],
        "cart": f"{cart}-7f9-x dbx",
    }
    assert json.loads(found.files["logs.ndjson"])["line"] == f"{database}: slow"
    assert [one["labels"] for one in series(found)][1] == {"app": database}
