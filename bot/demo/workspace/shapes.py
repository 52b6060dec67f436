"""Small checks over JSON that combine into the shape of a block. Each yields its problems."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from bot.demo.workspace.json_access import JsonObject

# A check is given a value and where it is (a JSON pointer).
Check = Callable[[JsonValue, str], Iterator[str]]


def problem(what: str, pointer: str) -> str:
    """In Slack's words for `response_metadata.messages`."""
    return f"[ERROR] {what} [json-pointer:{pointer}]"


def string(maximum: int, minimum: int = 1) -> Check:
    """A string of so many characters."""

    def check(value: JsonValue, pointer: str) -> Iterator[str]:
        if not isinstance(value, str):
            yield problem("must be a string", pointer)
        elif len(value) > maximum:
            yield problem(f"must be less than {maximum + 1} characters", pointer)
        elif len(value) < minimum:
            yield problem(f"must be more than {minimum - 1} characters", pointer)

    return check


def boolean(value: JsonValue, pointer: str) -> Iterator[str]:
    """True or false."""
    if not isinstance(value, bool):
        yield problem("must be a boolean", pointer)


def number(value: JsonValue, pointer: str) -> Iterator[str]:
    """A JSON number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield problem("must be a number", pointer)


def anything(value: JsonValue, pointer: str) -> Iterator[str]:  # noqa: ARG001  a Check
    """Not looked at."""
    yield from ()


def one_of(*allowed: str) -> Check:
    """One of these words."""

    def check(value: JsonValue, pointer: str) -> Iterator[str]:
        if value not in allowed:
            yield problem(f"must be one of {', '.join(allowed)}", pointer)

    return check


def listing(item: Check, maximum: int, minimum: int = 1) -> Check:
    """A list of so many items."""

    def check(value: JsonValue, pointer: str) -> Iterator[str]:
        if not isinstance(value, list):
            yield problem("must be an array", pointer)
            return
        if len(value) > maximum:
            yield problem(f"no more than {maximum} items allowed", pointer)
        if len(value) < minimum:
            yield problem(f"must have at least {minimum} items", pointer)
        for index, each in enumerate(value):
            yield from item(each, f"{pointer}/{index}")

    return check


def members(required: Mapping[str, Check], optional: Mapping[str, Check]) -> Check:
    """An object with exactly these members; `type` is looked at elsewhere."""
    known = {**required, **optional}

    def check(value: JsonValue, pointer: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield problem("must be an object", pointer)
            return
        for name in required:
            if name not in value:
                yield problem(f"missing required field: {name}", pointer)
        for name, member in value.items():
            if name in known:
                yield from known[name](member, f"{pointer}/{name}")
            elif name != "type":
                yield problem(f"invalid additional property: {name}", pointer)

    return check


def tagged(kinds: Mapping[str, Check]) -> Check:
    """An object whose `type` says which check applies."""

    def check(value: JsonValue, pointer: str) -> Iterator[str]:
        kind = value.get("type") if isinstance(value, dict) else None
        if isinstance(kind, str) and kind in kinds:
            yield from kinds[kind](value, pointer)
        else:
            yield problem(f"unsupported type: {kind}", f"{pointer}/type")

    return check


def all_of(*checks: Check) -> Check:
    """Every one of these."""

    def check(value: JsonValue, pointer: str) -> Iterator[str]:
        for each in checks:
            yield from each(value, pointer)

    return check


def some_of(*names: str) -> Check:
    """At least one of these members."""

    def check(value: JsonValue, pointer: str) -> Iterator[str]:
        if isinstance(value, dict) and not any(value.get(name) for name in names):
            yield problem(f"one of {', '.join(names)} is required", pointer)

    return check


def only_one_of(*names: str) -> Check:
    """Not two of these members."""

    def check(value: JsonValue, pointer: str) -> Iterator[str]:
        if isinstance(value, dict) and sum(name in value for name in names) > 1:
            yield problem(f"only one of {', '.join(names)} is allowed", pointer)

    return check


def texts_in(value: JsonValue) -> Iterator[str]:
    """Every string under a `text` key, at any depth."""
    if isinstance(value, dict):
        for name, member in value.items():
            if name == "text" and isinstance(member, str):
                yield member
            else:
                yield from texts_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from texts_in(member)


def duplicates(objects: Sequence[JsonObject], name: str) -> Iterator[str]:
    """Values of a member that occur twice."""
    seen: set[str] = set()
    for each in objects:
        value = each.get(name)
        if isinstance(value, str) and value:
            if value in seen:
                yield value
            seen.add(value)
