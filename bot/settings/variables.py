"""`${NAME}` and `${NAME:-default}` in a configuration file, and the names missing in the
environment.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_NEAR: Final = 0.85  # a letter or two of a name; SLACK_APP_TOKEN is not SLACK_BOT_TOKEN


@dataclass(frozen=True, slots=True)
class Unset:
    """A variable without a value or a default. `key` is the setting that is empty for it.

    `near` is a variable that is set, that the file does not name, and that is spelt almost so.
    """

    key: str
    variable: str
    near: str

    def as_words(self) -> str:
        """For people; names only, never a value."""
        near = f" ({self.near} is set: did you mean that?)" if self.near else ""
        return f"the environment has no {self.variable}{near}"

    @property
    def place(self) -> tuple[str, str]:
        """The setting and its missing variable, for any list position."""
        parts = ("*" if part.isdigit() else part for part in self.key.split("."))
        return ".".join(parts), self.variable


@dataclass(slots=True)
class Interpolation:
    """Fills a tree of TOML in. A missing variable is empty: what needs it is unavailable, not broken."""

    env: Mapping[str, str] = field(repr=False)
    _missing: dict[str, str] = field(default_factory=dict)
    _named: set[str] = field(default_factory=set)

    def fill(self, value: object, path: Sequence[str] = ()) -> object:
        """The tree with every reference replaced."""
        match value:
            case str():
                return _REFERENCE.sub(lambda found: self._value(found, path), value)
            case dict():
                return {key: self.fill(each, [*path, str(key)]) for key, each in value.items()}
            case list():
                return [self.fill(each, [*path, str(at)]) for at, each in enumerate(value)]
            case _:
                return value

    def _value(self, found: re.Match[str], path: Sequence[str]) -> str:
        name, default = found[1], found[2]
        self._named.add(name)
        value = self.env.get(name, "").strip()
        if not value and default is None:
            self._missing[".".join(path)] = name
        return value or default or ""

    def unset(self) -> tuple[Unset, ...]:
        """The variables missing so far, in the order of the file."""
        spare = [name for name, value in self.env.items() if value.strip()]
        spare = [name for name in spare if name not in self._named]
        return tuple(
            Unset(key, name, next(iter(get_close_matches(name, spare, n=1, cutoff=_NEAR)), ""))
            for key, name in self._missing.items()
        )


def newly_unset(before: Iterable[Unset], after: Iterable[Unset]) -> tuple[Unset, ...]:
    """Of those after, the ones that there were not before; one that only moved in its list was."""
    known = Counter(each.place for each in before)
    new: list[Unset] = []
    for each in after:
        known[each.place] -= 1
        if known[each.place] < 0:
            new.append(each)
    return tuple(new)
