"""What one deliberately broken copy is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file. `caught_by` are test ids; at least one of them has to fail."""

    name: str
    path: str
    before: str
    after: str
    caught_by: tuple[str, ...]
