"""`dataclass` as the standard library's, at half of its memory and a quarter of the time to define it.

The library compiles six methods of text for each frozen class, and a running bot has four hundred. Here
`__init__` alone is compiled, which assigns to the slots directly, and the rest is shared. Type checkers
see the library's own. With other options than `slots` and `frozen` it is the library's. What the
library calls `InitVar` is not known here.
"""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ("dataclass", "field")

_T = TypeVar("_T")
_Values = Callable[[Any], Any]


def _lean(cls: type[_T] | None = None, /, **options: Any) -> Any:
    """The library's decorator: see the module."""
    if cls is None:
        return lambda decorated: _lean(decorated, **options)
    if not options.get("slots") or options.keys() - {"slots", "frozen", "kw_only"}:
        return dataclasses.dataclass(cls, **options)
    if (
        not cls.__doc__
    ):  # else the library asks for its signature, which keeps a copy of sys.modules
        cls.__doc__ = cls.__name__
    frozen = options.pop("frozen", False)
    made: Any = dataclasses.dataclass(cls, repr=False, eq=False, init=not frozen, **options)
    own = vars(cls)
    values = _values_of([each.name for each in fields(made) if each.compare])
    if own.get("__hash__") is None:  # Python sets None beside an own comparison
        made.__hash__ = _hash_of(values) if frozen else None
    if "__eq__" not in own:
        made.__eq__ = _eq_of(values)
    if "__repr__" not in own:
        made.__repr__ = _repr
    if frozen:
        made.__init__ = _init_of(made)
        made.__setattr__, made.__delattr__ = _refuse_to_set, _refuse_to_delete
        made.__getstate__, made.__setstate__ = _getstate, _setstate
    return made


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _lean


def _values_of(names: list[str]) -> _Values:
    """Of one name the pair of it: a value alone would be compared where a tuple looks at identity."""
    if not names:
        return lambda _: ()
    return attrgetter(*names if len(names) > 1 else names * 2)


def _eq_of(values: _Values) -> Callable[[Any, Any], Any]:
    def equals(self: Any, other: Any) -> Any:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return equals


def _hash_of(values: _Values) -> Callable[[Any], int]:
    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


@recursive_repr()
def _repr(self: Any) -> str:
    told = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(told)})"


def _refuse_to_set(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _init_of(cls: type) -> Callable[..., None]:
    """Assigns to the slots themselves, past the refusal."""
    known: dict[str, Any] = {"MISSING": MISSING, "__name__": cls.__module__}
    every = fields(cls)
    given = [each for each in every if each.init]
    named = [each for each in given if each.kw_only]
    parameters = [_parameter(each, known) for each in given if not each.kw_only]
    if named:
        parameters += ["*", *(_parameter(each, known) for each in named)]
    body = [line for each in every for line in _assigned(cls, each, known)]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    source = f"def __init__(self, {', '.join(parameters)}):\n " + "\n ".join(body or ["pass"])
    exec(source, known)  # noqa: S102 - names of fields, which Python has read as names already
    init: Callable[..., None] = known.pop("__init__")
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _parameter(each: "Field[Any]", known: dict[str, Any]) -> str:
    if each.default_factory is not MISSING:
        return f"{each.name}=MISSING"
    if each.default is MISSING:
        return each.name
    known[f"default_{each.name}"] = each.default
    return f"{each.name}=default_{each.name}"


def _assigned(cls: type, each: "Field[Any]", known: dict[str, Any]) -> Iterator[str]:
    name = each.name
    value = name if each.init else f"default_{name}"
    if each.default_factory is not MISSING:
        known[f"make_{name}"] = each.default_factory
        value = f"make_{name}() if {name} is MISSING else {name}" if each.init else f"make_{name}()"
    elif not each.init:
        if each.default is MISSING:
            return
        known[f"default_{name}"] = each.default
    slot = getattr(cls, name, None)
    if isinstance(slot, MemberDescriptorType):
        known[f"set_{name}"] = slot.__set__
        yield f"set_{name}(self, {value})"
    else:  # of a base without slots
        known["assign"] = object.__setattr__
        yield f"assign(self, {name!r}, {value})"
