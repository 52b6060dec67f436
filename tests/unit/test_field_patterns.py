"""The patterns of pydantic's fields stay small: a class of Unicode repeated 64 times takes 7 MB."""

import importlib
import re
from collections.abc import Iterator
from typing import get_args

from pydantic import BaseModel

from tests.sources import sources

# `[\w.-]{0,63}` is 64 copies of a table of every alphabet; `[\w.-]*` with max_length is one.
COPIES = re.compile(r"\\[wWdDsS](?:[^\[\]]*\])?\{\d*,?\d{2,}\}")


def patterns(*parts: object) -> Iterator[str]:
    """Those of a type and of what constrains it."""
    for part in parts:
        pattern = getattr(part, "pattern", None)
        if isinstance(pattern, str):
            yield pattern
        yield from patterns(*get_args(part), *getattr(part, "metadata", ()))


def models(of: type[BaseModel] = BaseModel) -> Iterator[type[BaseModel]]:
    """Every model that is defined by now."""
    for each in of.__subclasses__():
        yield each
        yield from models(each)


def test_no_field_repeats_a_class_of_unicode() -> None:
    for source in sources():
        if "pattern=" in source.text:
            importlib.import_module(source.path.removesuffix(".py").replace("/", "."))
    fields = [(model, field) for model in models() for field in model.model_fields.values()]
    found = [
        (model.__name__, pattern)
        for model, field in fields
        for pattern in patterns(field.annotation, *field.metadata)
    ]

    assert ("ActionSettings", r"^[a-z][a-z0-9-]{0,62}$") in found
    assert [each for each in found if COPIES.search(each[1])] == []
