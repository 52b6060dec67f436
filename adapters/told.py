"""What another system tells: a deploy, an incident, a finding."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class IngestedEvent:
    """One CloudEvent from outside, the same by (`source`, `id`) however often it is told.

    Some systems number nothing and tell the state of a thing again and again. Theirs belong to a
    `course`, the thing, and are at a `step`, its state; the id begins with `course/step/`. What the
    newest of a course says already is no news.
    """

    id: str
    source: str
    type: str
    product: str
    at: datetime
    data: Mapping[str, JsonValue]
    course: str = ""
    step: str = ""
