"""Libraries that are loaded at their first use, though their importers ask for them at once.

DBOS imports psycopg for every database, SQLAlchemy's ORM and asyncio, a command line and a reader of
cron for a word in a signature, and clients for other programs; SQLAlchemy brings each driver that it
knows; Slack's SDK clients that block and classes for blocks, Bolt what installs an app in a
workspace, assistants and the steps of Slack's former workflows, aiohttp files, traces, logins and
WebSockets, attrs checks of fields; Python itself a reader of archives, and of files in packages, for
a version. A bot never uses them, or few do.
"""

import importlib
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from bot.upkeep.late_client import spare_methods
from bot.upkeep.untrusting import Untrusting

# Asked for by name by those that import them, as classes to name in a signature or to call.
_CLASSES: Final = (
    "aiohttp.client_middleware_digest_auth",
    "aiohttp.client_ws",
    "aiohttp.tracing",
    "aiohttp.web_fileresponse",
    "aiohttp.web_ws",
    "attr.validators",
    "croniter",
    "dateutil.parser",
    "dbos._client",
    "dbos._datasource",
    "dbos._debouncer",
    "dbos.cli.migration",
    "difflib",
    "html",
    "importlib.resources.abc",
    "netrc",
    "prometheus_client.exposition",
    "slack_bolt.app.app",
    "slack_bolt.authorization.authorize",
    "slack_bolt.context.ack.ack",
    "slack_bolt.context.assistant.assistant_utilities",
    "slack_bolt.context.assistant.thread_context_store.file",
    "slack_bolt.context.complete.complete",
    "slack_bolt.context.context",
    "slack_bolt.context.fail.fail",
    "slack_bolt.context.get_thread_context.get_thread_context",
    "slack_bolt.context.respond.respond",
    "slack_bolt.context.save_thread_context.save_thread_context",
    "slack_bolt.context.say.say",
    "slack_bolt.context.say_stream.say_stream",
    "slack_bolt.context.set_status.set_status",
    "slack_bolt.context.set_suggested_prompts.set_suggested_prompts",
    "slack_bolt.context.set_title.set_title",
    "slack_bolt.kwargs_injection.args",
    "slack_bolt.lazy_listener.thread_runner",
    "slack_bolt.listener.async_builtins",
    "slack_bolt.listener.thread_runner",
    "slack_bolt.middleware.assistant.assistant",
    "slack_bolt.middleware.assistant.async_assistant",
    "slack_bolt.oauth.async_internals",
    "slack_bolt.oauth.async_oauth_flow",
    "slack_bolt.oauth.async_oauth_settings",
    "slack_bolt.workflows.step.async_step",
    "slack_bolt.workflows.step.async_step_middleware",
    "slack_bolt.workflows.step.utilities.async_complete",
    "slack_bolt.workflows.step.utilities.async_configure",
    "slack_bolt.workflows.step.utilities.async_fail",
    "slack_bolt.workflows.step.utilities.async_update",
    "slack_bolt.workflows.step.utilities.complete",
    "slack_bolt.workflows.step.utilities.configure",
    "slack_bolt.workflows.step.utilities.fail",
    "slack_bolt.workflows.step.utilities.update",
    "slack_sdk.models.attachments",
    "slack_sdk.models.blocks",
    "slack_sdk.models.blocks.blocks",
    "slack_sdk.models.messages.chunk",
    "slack_sdk.models.metadata",
    "slack_sdk.models.views",
    "slack_sdk.oauth",
    "slack_sdk.oauth.installation_store",
    "slack_sdk.oauth.installation_store.async_installation_store",
    "slack_sdk.oauth.installation_store.models.bot",
    "slack_sdk.oauth.installation_store.models.installation",
    "slack_sdk.oauth.token_rotation.async_rotator",
    "slack_sdk.oauth.token_rotation.rotator",
    "slack_sdk.web.async_chat_stream",
    "slack_sdk.web.chat_stream",
    "slack_sdk.web.client",
    "slack_sdk.webhook.client",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "sqlalchemy.dialects.postgresql.pg8000",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.postgresql.psycopg2",
    "sqlalchemy.dialects.postgresql.psycopg2cffi",
    "sqlalchemy.dialects.sqlite.aiosqlite",
    "sqlalchemy.dialects.sqlite.pysqlcipher",
    "sqlalchemy.ext.asyncio",
    "sqlalchemy.orm",
    "statistics",
)
# Modules of a library whose importers look at what they hold only when they run.
_PARTS: Final = ("sqlalchemy.dialects.postgresql.pg_catalog",)
# Of those above: their modules are imported by name (`html.entities`, by Mako where there is no Pygments).
_WITH_PARTS: Final = ("html",)
# Taken in where they are installed: by structlog for colours in logs, by SQLAlchemy for its asyncio.
_LEFT_OUT: Final = ("greenlet", "rich")


def spare_libraries() -> None:
    """Arrange all of it; before anything else is imported."""
    postpone("psycopg", "errors")
    for name in ("csv", "yaml", "zipfile"):
        postpone(name)
    # Who asks for a version looks into what is no folder as into an archive.
    sys.path[:] = [place for place in sys.path if not place or Path(place).exists()]
    for name in _PARTS:
        sys.modules.setdefault(name, _Late(name, (name,)))
    for name in _CLASSES:
        postpone_classes(name)
    for name in _WITH_PARTS:
        _keep_parts(name)
    for name in _LEFT_OUT:
        leave_out(name)
    spare_methods()
    sys.meta_path.insert(0, Untrusting("aiohttp.connector"))


class _Late(ModuleType):
    """Stands in for the library. The first look at anything of it puts the library in its place."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(name)
        self._names = names

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)  # the import system looks at these and means nothing by it
        for each in self._names:
            if isinstance(sys.modules.get(each), _Late):
                sys.modules.pop(each, None)
        importlib.import_module(self._names[0])
        real = importlib.import_module(self.__name__)
        return getattr(real, name)


def postpone(library: str, *parts: str) -> None:
    """Let it be loaded at its first use; nothing where it is loaded already, or not installed.

    `parts` are its modules that are imported by name, and used later too.
    """
    spec = None if library in sys.modules else importlib.util.find_spec(library)
    if spec is None:
        return
    names = (library, *(f"{library}.{part}" for part in parts))
    late = {name: _Late(name, names) for name in names}
    late[library].__path__ = list(spec.submodule_search_locations or ())
    for part in parts:
        setattr(late[library], part, late[f"{library}.{part}"])
    sys.modules.update(late)


class _LateClass(type):
    """The type of what stands in for a class, or a function: used, it is the real one."""

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> type:
        if not bases:  # else it would be a subclass of nothing
            return super().__new__(cls, name, bases, members)
        real = tuple(_real(each) if isinstance(each, _LateClass) else each for each in bases)
        return types.new_class(name, real, exec_body=lambda body: body.update(members))

    def __call__(cls, *args: Any, **named: Any) -> Any:
        return _real(cls)(*args, **named)

    def __getattr__(cls, name: str) -> Any:
        return getattr(_real(cls), name)

    def __getitem__(cls, _: object) -> "_LateClass":
        return cls

    def __instancecheck__(cls, instance: object) -> bool:
        # There is none of a class that was never loaded.
        return not _is_late(cls.__module__) and isinstance(instance, _real(cls))

    def __subclasscheck__(cls, subclass: type) -> bool:
        if isinstance(subclass, _LateClass):
            return cls is subclass or issubclass(_real(subclass), _real(cls))
        return not _is_late(cls.__module__) and issubclass(subclass, _real(cls))


class _LateNames(ModuleType):
    """Stands in for a module until one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        late = _LateClass(name, (), {"__module__": self.__name__})
        setattr(self, name, late)
        return late


def postpone_classes(module: str) -> None:
    """Let it be loaded when something that was imported *from* it is called, or looked at.

    For modules that only hold classes and functions. One that is not installed is missed then.
    """
    if module not in sys.modules:
        sys.modules[module] = _LateNames(module)


def _keep_parts(package: str) -> None:
    """Let modules of it be imported while it is late."""
    if _is_late(package):
        spec = importlib.machinery.PathFinder.find_spec(package)
        sys.modules[package].__path__ = list((spec and spec.submodule_search_locations) or ())


def leave_out(module: str) -> None:
    """It counts as not installed."""
    sys.modules.setdefault(module, None)  # type: ignore[arg-type] # as the import system means it


def _set_of(module: str) -> str:
    """The modules that are loaded together: they import from within each other.

    Not what SQLAlchemy has beside its dialects: its asyncio needs what is left out.
    """
    dialects = "sqlalchemy.dialects"
    return dialects if module.startswith(f"{dialects}.") else module.partition(".")[0]


def _is_late(module: str) -> bool:
    return isinstance(sys.modules.get(module), _LateNames)


def _loaded(module: str) -> ModuleType:
    if _is_late(module):
        together = _set_of(module)
        for name in [each for each in sys.modules if _set_of(each) == together]:
            if _is_late(name):
                del sys.modules[name]
    return importlib.import_module(module)


def _real(late: type) -> Any:
    return getattr(_loaded(late.__module__), late.__name__)
