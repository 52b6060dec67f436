"""Facts about products from core__sweep_cluster, without judgement or text for people."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from adapters.llm.triage.case import SeenResult, text_of


@dataclass(frozen=True, slots=True)
class IllFact:
    """An unhealthy object, or a warning about one (`warned`)."""

    product: str
    kind: str
    name: str
    state: str
    mechanism: str
    detail: str
    warned: bool
    over: bool
    mark: str
    impact: str = "down"
    named_by: str = ""  # the mark of what names the object, where that is another result


@dataclass(frozen=True, slots=True)
class DatastoreFact:
    """A product that stores or queues data. `is_new`: its newest pod was created within the hour."""

    product: str
    technology: str
    is_new: bool
    mark: str


def ill_facts(seen: SeenResult, name: Callable[[str], str]) -> Iterator[IllFact]:
    """Unhealthy objects and Kubernetes warnings, products named by `name`."""
    for row in seen.rows("ill"):
        yield IllFact(
            name(text_of(row, "product")),
            text_of(row, "kind"),
            text_of(row, "name"),
            text_of(row, "state"),
            text_of(row, "mechanism"),
            text_of(row, "detail"),
            warned=False,
            over=False,
            mark=seen.mark,
            impact=text_of(row, "impact") or "down",
        )
    for row in seen.rows("warnings"):
        kind, _, called = text_of(row, "object").partition("/")
        yield IllFact(
            name(text_of(row, "product")),
            kind,
            called,
            text_of(row, "reason"),
            text_of(row, "mechanism"),
            text_of(row, "message"),
            warned=True,
            over=row.get("over") is True,
            mark=seen.mark,
        )


def datastore_facts(seen: SeenResult, name: Callable[[str], str]) -> Iterator[DatastoreFact]:
    """The products that store or queue data, named by `name`."""
    for row in seen.rows("datastores"):
        yield DatastoreFact(
            name(text_of(row, "product")),
            text_of(row, "technology"),
            row.get("is_new") is True,
            seen.mark,
        )
