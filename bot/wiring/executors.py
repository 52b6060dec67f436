"""What carries confirmed actions out, by the kind of their endpoint."""

from collections.abc import Callable

import httpx

from adapters.control_plane.client import HttpControlPlane
from adapters.control_plane.executors import Executors, Rehearsal
from adapters.control_plane.pipelines import GitHub, GitLab, Pipelines
from adapters.control_plane.port import ExecutorKind


def make_executors(credentials: Callable[[str], str], client: httpx.AsyncClient) -> Executors:
    """`credentials` gives an action's token; it is asked when an order is sent, after a Confirm."""
    return Executors(
        {
            ExecutorKind.CONTROL_PLANE: HttpControlPlane(client, credentials),
            ExecutorKind.GITHUB: Pipelines(GitHub(), client, credentials),
            ExecutorKind.GITLAB: Pipelines(GitLab(), client, credentials),
            ExecutorKind.REHEARSAL: Rehearsal(),
        }
    )
