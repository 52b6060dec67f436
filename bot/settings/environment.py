"""The process environment: the one place that reads it."""

import os
from collections.abc import Mapping


def environment() -> Mapping[str, str]:
    """What it holds, read here and passed on."""
    return os.environ  # noqa: TID251 - the one place
