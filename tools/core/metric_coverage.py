"""What core__sweep_metrics says of each product for an all-clear: what exists, was compared, is gone."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from tools.analysis.usual import UNUSUAL
from tools.core.metric_history import Shifted, has_stopped
from tools.core.metric_sweep import Disappeared, MetricGap, MetricSweep, Record
from tools.core.sweep_arguments import at_text
from tools.output import clean_text
from tools.signals import ROLES, Discovered, Role, Signal
from tools.statistics import rounded

MOST_DISAPPEARED: Final = 20
MOST_RECORDS: Final = 8


def with_coverage(
    output: MetricSweep,
    found: Discovered,
    shifted: Sequence[Shifted],
    read: Mapping[str, Signal],
    start: datetime,
) -> MetricSweep:
    """The output with the uncompared and the disappeared signals added.

    `read` are signals by name, in the form of their values.
    """
    gone = [*_fallen(shifted, start), *_ended(output.gaps, shifted)]
    gone.sort(key=lambda one: (ROLES.index(one.role), one.product, one.signal))
    worst: dict[str, Record] = {}
    for one in sorted(_records(shifted), key=lambda one: -one.spreads):
        worst.setdefault(one.product, one)
    records = list(worst.values())
    return output.model_copy(
        update={
            "unchecked": _unchecked(found, shifted, read),
            "unnamed": _unnamed(shifted),
            "records": records[:MOST_RECORDS],
            "more_records": max(0, len(records) - MOST_RECORDS),
            "compared": len(shifted),
            "unread": sum(signal.name not in read for signal in found.signals),
            "disappeared": gone[:MOST_DISAPPEARED],
            "truncated": output.truncated or len(gone) > MOST_DISAPPEARED,
        }
    )


def _unchecked(
    found: Discovered, shifted: Sequence[Shifted], read: Mapping[str, Signal]
) -> dict[str, str]:
    compared: dict[str, set[Role]] = {}
    for product, signal, _ in shifted:
        compared.setdefault(product, set()).add(signal.role)
    existing: dict[str, set[Role]] = {}
    for signal in found.signals:
        for product in signal.places:
            existing.setdefault(product, set()).add(read.get(signal.name, signal).role)
    return {
        clean_text(product): " ".join(sorted(left))
        for product, roles in sorted(existing.items())
        if (left := roles - compared.get(product, set()))
    }


def _unnamed(shifted: Sequence[Shifted]) -> dict[str, str]:
    counts: dict[str, tuple[int, int]] = {}
    for product, signal, moved in shifted:
        if signal.role == "other":
            beyond, compared = counts.get(product, (0, 0))
            counts[product] = beyond + (moved.size >= UNUSUAL), compared + 1
    return {
        clean_text(product): f"{beyond}/{compared}"
        for product, (beyond, compared) in sorted(counts.items())
    }


def _records(shifted: Sequence[Shifted]) -> Iterator[Record]:
    for product, signal, moved in shifted:
        if moved.record >= UNUSUAL:
            falls = moved.fall > moved.rise
            yield Record(
                product=clean_text(product),
                role=signal.role,
                signal=clean_text(signal.name),
                usual=rounded(moved.usual),
                worst=rounded(moved.low if falls else moved.high),
                direction="down" if falls else "up",
                spreads=rounded(moved.record, 3),
            )


def _fallen(shifted: Sequence[Shifted], start: datetime) -> Iterator[Disappeared]:
    """Traffic, or growth of a counter, that fell to nothing and is still there, as never before."""
    for product, signal, moved in shifted:
        if moved.down >= UNUSUAL and has_stopped(signal, moved):
            yield Disappeared(
                product=clean_text(product),
                role=signal.role,
                signal=clean_text(signal.name),
                how="zero",
                usual=rounded(moved.usual),
                unit=signal.unit,
                since=None if moved.since is None else at_text(moved.since, start),
            )


def _ended(gaps: Sequence[MetricGap], shifted: Sequence[Shifted]) -> Iterator[Disappeared]:
    known = {(product, signal.role): (signal, moved) for product, signal, moved in shifted}
    by_name = {(product, signal.name): (signal, moved) for product, signal, moved in shifted}
    for gap in gaps:
        roles = [role for role in ROLES if role in gap.roles.split()]
        if gap.until is not None or not (roles or gap.is_down):
            continue
        role: Role = roles[0] if roles else "other"
        nothing = None, None
        named = by_name.get((gap.product, gap.signal or ""), nothing)
        signal, moved = named if gap.signal else known.get((gap.product, role), nothing)
        yield Disappeared(
            product=gap.product,
            role=role,
            signal=gap.signal or (clean_text(signal.name) if signal else ""),
            how="down" if gap.is_down else "ended",
            usual=rounded(moved.usual) if moved else None,
            unit=signal.unit if signal else None,
            since=gap.since,
            since_before=gap.since_before,
        )
