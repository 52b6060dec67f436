"""Events of other systems: a deploy, an incident, a finding."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class IngestedEvent:
    """One CloudEvent from outside, the same by (`source`, `id`) for every delivery.

    Some systems have no numbers and report an object's state repeatedly. Such events belong to a
    `course`, the object, and are at a `step`, its state; the id begins with `course/step/`. A
    repeat of the newest step of a course is not news.
    """

    id: str
    source: str
    type: str
    product: str
    at: datetime
    data: Mapping[str, JsonValue]
    course: str = ""
    step: str = ""
