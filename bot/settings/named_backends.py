"""Several backends of a kind by name, `[observe.logs.eu]`, and which of them a channel chooses."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from bot.settings.section import NotEmpty, Section

DEFAULT: Final = "default"  # what `[observe.logs]` itself is called where a channel chooses
NAMED: Final = "named"  # the field that holds them; no key of kortex.toml
BackendName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]


class ByName(Section):
    """The settings of a named backend beside its kind's keys.

    `products` choose it: a channel with only products of one backend uses that one.
    """

    products: tuple[NotEmpty, ...] = ()

    @model_validator(mode="after")
    def _real(self) -> Self:
        if getattr(self, "kind", "none") in ("none", "recorded"):
            raise ValueError("kind: a named backend needs one, other than recorded")
        return self


class HoldsNamed(Section):
    """A family's table: the tables within it that are no key of its own are read as `named`."""

    @model_validator(mode="before")
    @classmethod
    def _named_apart(cls, read: object) -> object:
        return _named_apart(read, frozenset(cls.model_fields))


def _named_apart(read: object, own: frozenset[str]) -> object:
    if not isinstance(read, dict) or not all(isinstance(key, str) for key in read):
        return read
    apart = read.get(NAMED)
    if isinstance(apart, dict) and all(isinstance(each, dict) for each in apart.values()):
        return read  # settings that were dumped
    named = {k: v for k, v in read.items() if isinstance(v, dict) and k not in own - {NAMED}}
    if not named:
        return read
    if DEFAULT in named:
        raise ValueError(f"{DEFAULT!r} is the table itself; give a backend another name")
    return {**{k: v for k, v in read.items() if k not in named}, NAMED: named}


def as_written(path: Sequence[str]) -> list[str]:
    """A pydantic path as it is written in kortex.toml."""
    hidden = path[0] == "observe" and list(path[2:3]) == [NAMED] if path else False
    return [*path[:2], *path[3:]] if hidden else list(path)


class ChosenBackends(Section):
    """`[[channels]] backends`: a name for each family; empty, the products choose."""

    logs: str = ""
    metrics: str = ""
    traces: str = ""
    errors: str = ""


def _of_every_family(value: object) -> object:
    return dict.fromkeys(ChosenBackends.model_fields, value) if _is_name(value) else value


def _is_name(value: object) -> bool:
    return isinstance(value, str)


Choice = Annotated[ChosenBackends, BeforeValidator(_of_every_family)]
Family = Literal["logs", "metrics", "traces", "errors"]
FAMILIES: Final[tuple[Family, ...]] = ("logs", "metrics", "traces", "errors")


def owners(named: Mapping[str, ByName]) -> dict[str, str]:
    """Backends by the product that chooses them; `clashes` says that there is one each."""
    return {product: name for name, each in named.items() for product in each.products}


def clashes(table: str, named: Mapping[str, ByName]) -> Iterator[tuple[list[str], str]]:
    """Products that choose more than one backend: where that is written, and what to say."""
    first: dict[str, str] = {}
    for name, each in named.items():
        for product in each.products:
            other = first.setdefault(product, name)
            if other != name:
                path = [*table.split("."), name, "products"]
                yield path, f"{product!r} already uses [{table}.{other}]"


def chosen_in_vain(
    choice: ChosenBackends, named: Mapping[Family, Mapping[str, Any]]
) -> Iterator[str]:
    written = {family: getattr(choice, family) for family in FAMILIES}
    one_for_all = len({*written.values()}) == 1
    everywhere = {name for each in named.values() for name in each}
    for family, name in written.items():
        known = everywhere if one_for_all else {*named[family]}
        if name not in {"", DEFAULT, *known}:
            yield f"there is no [observe.{family}.{name}]"
            if one_for_all:
                return
