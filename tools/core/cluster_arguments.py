"""Argument types that the Kubernetes tools share."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def _name(text: str) -> str:
    if text and (_NAME.fullmatch(text) is None or ".." in text):
        raise ValueError("lower-case letters, digits, '-' and '.', at most 253")
    return text


KindName = Annotated[
    str, Field(min_length=1, max_length=40, description="pods, deployments, services, nodes, ...")
]
ObjectName = Annotated[str, AfterValidator(_name), Field(max_length=253)]
Namespace = Annotated[
    str, AfterValidator(_name), Field(max_length=63, description="Empty: the usual one")
]
