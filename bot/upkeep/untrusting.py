"""A library that makes TLS contexts when it is imported, and reads the system's authorities for each.

aiohttp makes two, for sessions that name nobody to trust: 2 MB and 40 ms of a start. All of ours name
it (`adapters.http.ssl_context`), so that those trust nobody: a session that forgets it is refused.
"""

import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it brings what reads archives
    from importlib.abc import Loader


class Untrusting:
    """Finds that module once, and has it read no certificates while it is imported."""

    def __init__(self, module: str) -> None:
        self._module = module

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the import system's signature
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """The usual one, with another loader; None for every other module."""
        if fullname != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Reading(spec.loader)  # type: ignore[assignment] # it is all of one that is asked of it
        return spec


class _Reading:
    def __init__(self, usual: "Loader") -> None:
        self._usual = usual

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._usual.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with _no_certificates():
            self._usual.exec_module(module)


@contextmanager
def _no_certificates() -> Iterator[None]:
    """Contexts that this thread makes meanwhile trust nobody."""
    import ssl  # not for `--help`

    here, usual = threading.get_ident(), ssl.SSLContext.set_default_verify_paths

    def read(context: ssl.SSLContext) -> None:
        if threading.get_ident() != here:
            usual(context)

    ssl.SSLContext.set_default_verify_paths = read  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        del ssl.SSLContext.set_default_verify_paths  # it is inherited
