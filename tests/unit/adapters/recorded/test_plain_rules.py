"""The plain reference: robust scores in both directions, the deepest product first."""

from collections.abc import Mapping, Sequence

import pytest

from adapters.recorded.packs.plain_rules import moved_by, plain_answer
from adapters.recorded.packs.recording import RecordedLine, RecordedSeries, Recording
from adapters.recorded.packs.schema import Case
from tests.packs import NOW, minutes

NOW_S = NOW.timestamp()


def series(product: str, usual: float, then: float) -> RecordedSeries:
    at = minutes(120)
    values = [usual * (1 + 0.01 * (number % 5)) for number in range(len(at) - 10)] + [then] * 10
    return RecordedSeries("gauge", {"app": product}, None, list(zip(at, values, strict=True)))


def counter(product: str, usual: float, then: float) -> RecordedSeries:
    total, points = 0.0, []
    for at, value in series(product, usual, then).points:
        total += value
        points.append((at, total))
    return RecordedSeries("total", {"app": product}, None, points)


def recording(found: Sequence[RecordedSeries], edges: Sequence[tuple[str, str]] = ()) -> Recording:
    products = ("web", "cart", "db")
    case = Case(id="c", set="own", asked="what is wrong?", now=NOW, products=products)
    return Recording(case, series=found, edges=edges)


@pytest.mark.parametrize("make", [series, counter])
@pytest.mark.parametrize(("then", "moves"), [(100.0, True), (0.0, True), (10.2, False)])
def test_rise_and_drop_beyond_the_usual_range_are_changes(
    make: object, then: float, moves: bool
) -> None:
    assert callable(make)
    answer = plain_answer(recording([make("db", 10.0, then), make("web", 10.0, 10.1)]))

    assert list(answer.suspects) == (["db"] if moves else [])
    assert answer.verdict == ("cause" if moves else "healthy")


@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e9])
def test_score_is_scale_free(factor: float) -> None:
    plain = moved_by(series("db", 10.0, 30.0), NOW_S)

    assert moved_by(series("db", 10.0 * factor, 30.0 * factor), NOW_S) == pytest.approx(plain)


def test_deepest_changed_product_comes_first() -> None:
    moved = [series("web", 1.0, 3.0), series("db", 1.0, 2.5)]

    apart = plain_answer(recording(moved))
    below = plain_answer(recording(moved, [("web", "cart"), ("web", "db")]))

    assert (list(apart.suspects), list(below.suspects)) == (["web", "db"], ["db", "web"])


def test_without_metrics_unready_pods_and_new_errors_are_evidence() -> None:
    pod: Mapping[str, object] = {
        "kind": "Pod",
        "metadata": {"name": "cart-1"},
        "status": {"containerStatuses": [{"ready": False}, None]},
    }
    late = round(NOW_S - 60) * 10**9
    lines = [RecordedLine(late + n, {"app": "web", "level": "Error"}, "no", "") for n in range(30)]
    case = recording([]).case

    found = plain_answer(Recording(case, lines=lines, objects=[pod, {"kind": "Pod"}]))  # type: ignore[list-item]

    assert list(found.suspects) == ["web", "cart"]


@pytest.mark.parametrize("points", [[], [(NOW_S, 1.0)], [(at, 0.0) for at in minutes(60)]])
def test_too_little_data_is_not_a_change(points: Sequence[tuple[float, float]]) -> None:
    assert moved_by(RecordedSeries("gauge", {}, None, points), NOW_S) == 0.0
