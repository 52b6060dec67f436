"""What the built-in tools share: their declaration, their capability, and the entries that they show."""

from datetime import datetime
from typing import Any, TypeVar

from tools.contract import QUERY, Effect, Timeouts, ToolContract, ToolInput, ToolOutput
from tools.errors import NobodyToAsk
from tools.output import clean_text
from tools.port import Port
from tools.products import ProductScope
from tools.timerange import instant_text

T = TypeVar("T")
EntryT = TypeVar("EntryT", bound=ToolOutput)


def read_only(
    name: str,
    description: str,
    shapes: tuple[type[ToolInput], type[ToolOutput]],
    capability: str | Port[Any],
    products: ProductScope,
    *toolsets: str,
    timeouts: Timeouts = QUERY,
    live: bool = False,
    requires_connection: bool = False,
) -> ToolContract:
    """The contract of a tool that only reads. `shapes` are its input and its output, shown whole.

    `capability` is a field of `Capabilities`, or the tool's own port.
    """
    given, answered = shapes
    ports = frozenset({capability}) if isinstance(capability, Port) else frozenset[Port[Any]]()
    fields = frozenset({capability}) if isinstance(capability, str) else frozenset[str]()
    return ToolContract(
        id=f"core__{name}",
        description=description,
        input=given,
        output=answered,
        effect=Effect.READ_ONLY,
        redaction=frozenset(answered.model_fields),
        timeouts=timeouts,
        capabilities=fields,
        ports=ports,
        products=products,
        toolsets=toolsets,
        live=live,
        requires_connection=requires_connection,
    )


def bound(capability: T | None, name: str) -> T:
    """The declared capability, which the runner has checked. Raises NobodyToAsk without it."""
    if capability is None:
        raise NobodyToAsk(f"not configured: {name}")
    return capability


def entry_of(model: type[EntryT], value: object, **own: object) -> EntryT:
    """The fields of a value by the names of the model; `own` ones replace them.

    Texts are clean and instants are text. What is empty is left out where the model allows that.
    """
    fields = model.model_fields
    found = {name: _shown(own[name] if name in own else getattr(value, name)) for name in fields}
    return model.model_validate(
        {n: v for n, v in found.items() if v not in (None, "") or fields[n].is_required()}
    )


def _shown(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    return instant_text(value) if isinstance(value, datetime) else value


def counted(number: int, noun: str) -> str:
    """`no workflows`, `1 workflow`, `3 workflows`."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
