"""The data files of this package, read once."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def read(name: str) -> dict[str, Any]:
    """The tables of `name`.toml. Reads a file the first time."""
    text = resources.files("bot.privacy").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def read_list(name: str) -> Any:
    """One entry of `lists.toml`."""
    return read("lists")[name]
