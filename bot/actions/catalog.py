"""The operator's declared actions: what may be proposed, for which products, with what parameters.

Nothing outside this catalogue can be proposed or dispatched. Reading the configuration file is
not done here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from pydantic import JsonValue

from adapters.control_plane.port import BadTemplate, Endpoint, ExecutorKind, check_template
from bot.actions.params import ParamsSchema
from bot.domain.freeze import QuietHours
from bot.domain.proposal import BLAST_RADII
from tools.errors import InvalidArguments
from tools.json_schema import SchemaInvalid
from tools.operation import Operation

# Names end up in URLs, keys and cards: one short printable word.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_RATE: Final = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})([smhd])")
MAX_APPROVALS: Final = 10  # each is a line on the card
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class CatalogError(Exception):
    """A declared action cannot work. `action` and `key` say where, the message says why."""

    def __init__(self, action: str, key: str, message: str) -> None:
        super().__init__(f"action {action!r}: {key}: {message}")
        self.action = action
        self.key = key


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `count` dispatches of one action for one product within `window_s` seconds."""

    count: int
    window_s: float

    @classmethod
    def parse(cls, text: str) -> "RateLimit | None":
        """`3/1h` → three an hour; empty is no limit. Raises ValueError."""
        if not text:
            return None
        found = _RATE.fullmatch(text)
        if not found:
            raise ValueError('must look like "3/1h" (units s, m, h, d)')
        return cls(int(found[1]), float(int(found[2]) * _UNIT_S[found[3]]))


@dataclass(frozen=True, slots=True)
class ActionRule:
    """One `[[actions]]` entry.

    `products` are globs. `blast_radius` is the maximum effect, in words; `max_objects` in numbers
    (0: not counted), counted in the parameter `count_param` or at the endpoint's count URL.
    `free_text` names parameters that select nothing. `confirm` are roles: a decision needs one of
    them beside one of the channel's; empty: the channel's suffice. `verify_metric` is compared with
    its baseline `verify_after_s` after a success; if it got worse, the action `rollback` is
    proposed.
    """

    name: str
    description: str
    endpoint: Endpoint
    products: tuple[str, ...] = ("*",)
    params_schema: Mapping[str, JsonValue] = field(default_factory=dict)
    reversible: bool = False
    blast_radius: str = BLAST_RADII[-1]
    rate_limit: str = ""
    max_objects: int = 0
    count_param: str = ""
    free_text: tuple[str, ...] = ()
    max_duration_s: float = 1800.0
    verify_metric: str = ""
    verify_after_s: float = 600.0
    rollback: str = ""
    rollback_params: Mapping[str, JsonValue] = field(default_factory=dict)
    dry_run: bool = False
    four_eyes: bool = False
    approvals: int = 1
    confirm: tuple[str, ...] = ()
    quiet_hours: tuple[str, ...] = ()
    confirm_dialog: bool = False

    @property
    def has_preview(self) -> bool:
        """Whether a card shows what would happen; a rehearsal always does."""
        return self.dry_run or self.endpoint.kind is ExecutorKind.REHEARSAL

    def fits(self, product: str) -> bool:
        return any(fnmatchcase(product, glob) for glob in self.products)


@dataclass(frozen=True, slots=True)
class Action:
    """A rule made ready: its schema compiled, its limit parsed."""

    rule: ActionRule
    schema: ParamsSchema
    rate_limit: RateLimit | None
    quiet_hours: tuple[QuietHours, ...] = ()


class ActionCatalog:
    """All declared actions by name. Changes as a whole only, by `replace`."""

    def __init__(self, rules: Iterable[ActionRule]) -> None:
        """Raises CatalogError for a declaration that cannot work."""
        self._actions: dict[str, Action] = {}
        for rule in rules:
            if rule.name in self._actions:
                raise CatalogError(rule.name, "name", "is declared twice")
            self._actions[rule.name] = _ready(rule)
        for action in self._actions.values():
            self._check_rollback(action.rule)

    def replace(self, other: "ActionCatalog") -> None:
        self._actions = dict(other._actions)  # noqa: SLF001 - its own kind

    def _check_rollback(self, rule: ActionRule) -> None:
        if not rule.rollback:
            return
        if not rule.verify_metric or not rule.reversible:
            raise CatalogError(
                rule.name, "rollback", "needs verify_metric, and an action that is reversible"
            )
        if rule.rollback not in self._actions:
            raise CatalogError(rule.name, "rollback", "is not a declared action")
        problems = self._actions[rule.rollback].schema.problems(rule.rollback_params)
        if problems:
            raise CatalogError(rule.name, "rollback_params", "; ".join(problems))

    def all(self) -> tuple[Action, ...]:
        return tuple(self._actions.values())

    def offered(self, product: str) -> tuple[Action, ...]:
        return tuple(a for a in self._actions.values() if a.rule.fits(product))

    def find(self, action: str, product: str) -> Action:
        """The action, if declared for that product.

        Raises InvalidArguments that lists what exists for the product, with its parameters.
        """
        if not _NAME.fullmatch(product):
            raise InvalidArguments(
                "product must be one name of letters, digits, '-', '_' and '.', at most 64 long"
            )
        found = self._actions.get(action)
        if found is None:
            named = f"is named {action}" if _NAME.fullmatch(action) else "has that name"
            raise InvalidArguments(f"no action {named}. {self._offer(product)}")
        if not found.rule.fits(product):
            raise InvalidArguments(
                f"{found.rule.name} is not declared for {product}. {self._offer(product)}"
            )
        return found

    def roles_of(self, action: str) -> tuple[str, ...]:
        found = self._actions.get(action)
        return found.rule.confirm if found else ()

    def check_params(self, action: Action, params: Mapping[str, JsonValue]) -> None:
        """Raises InvalidArguments naming what does not fit and the schema in words."""
        problems = action.schema.problems(params)
        if problems:
            raise InvalidArguments(
                f"params of {action.rule.name}: {'; '.join(problems)}. "
                f"It takes: {action.schema.in_words()}"
            )

    def _offer(self, product: str) -> str:
        offered = self.offered(product)
        if not offered:
            return f"No action may be proposed for {product}."
        listed = "; ".join(f"{a.rule.name} ({a.schema.in_words()})" for a in offered)
        return f"What exists for {product}: {listed}"


def _ready(rule: ActionRule) -> Action:
    if not _NAME.fullmatch(rule.name):
        raise CatalogError(rule.name, "name", "must be letters, digits, '-', '_' and '.'")
    if not rule.products or not all(rule.products):
        raise CatalogError(rule.name, "products", 'must name products, or ["*"] for every one')
    if rule.blast_radius not in BLAST_RADII:
        raise CatalogError(rule.name, "blast_radius", f"must be one of {', '.join(BLAST_RADII)}")
    if not 1 <= rule.approvals <= MAX_APPROVALS:
        raise CatalogError(rule.name, "approvals", f"must be from 1 to {MAX_APPROVALS}")
    _check_count(rule)
    _check_executor(rule)
    _check_endpoint(rule)
    try:
        quiet = _quiet_hours(rule)
        limit = RateLimit.parse(rule.rate_limit)
        return Action(rule, ParamsSchema(rule.params_schema), limit, quiet)
    except SchemaInvalid as error:
        raise CatalogError(rule.name, "params_schema", str(error)) from error
    except ValueError as error:
        raise CatalogError(rule.name, "rate_limit", str(error)) from error


def _quiet_hours(rule: ActionRule) -> tuple[QuietHours, ...]:
    try:
        return tuple(QuietHours.parse(text) for text in rule.quiet_hours)
    except ValueError as error:
        raise CatalogError(rule.name, "quiet_hours", str(error)) from error


def _check_count(rule: ActionRule) -> None:
    counted = bool(rule.count_param) + bool(rule.endpoint.reads.count_url)
    if counted > 1:
        raise CatalogError(rule.name, "count_param", "give this or count_url, not both")
    if counted != bool(rule.max_objects):
        raise CatalogError(
            rule.name,
            "max_objects",
            "a count needs a limit, and a limit a count: give max_objects with count_param or "
            "count_url",
        )


def _check_executor(rule: ActionRule) -> None:
    kind, endpoint = rule.endpoint.kind, rule.endpoint
    if kind is ExecutorKind.CONTROL_PLANE:
        return
    if rule.dry_run:
        raise CatalogError(rule.name, "dry_run", f"{kind} has no dry run")
    if endpoint.status_url:
        raise CatalogError(rule.name, "status_url", f"{kind} is asked at its own URL")
    if kind is not ExecutorKind.REHEARSAL and not endpoint.ref:
        raise CatalogError(rule.name, "endpoint.ref", "must name a branch or tag")


def _check_endpoint(rule: ActionRule) -> None:
    if rule.endpoint.method != "POST":
        # PUT and DELETE count as idempotent: an HTTP client may repeat them by itself.
        raise CatalogError(rule.name, "endpoint.method", "must be POST")
    endpoint, reads = rule.endpoint, rule.endpoint.reads
    if endpoint.url or endpoint.kind is not ExecutorKind.REHEARSAL:
        _check_url(rule, "endpoint.url", endpoint.url)
    for key, url, params in (
        ("status_url", endpoint.status_url, False),
        ("count_url", reads.count_url, True),
        ("fingerprint_url", reads.fingerprint_url, True),
    ):
        if url:
            _check_url(rule, key, url, params=params)


def _check_url(rule: ActionRule, key: str, url: str, *, params: bool = False) -> None:
    try:
        check_template(url, params=params)
    except BadTemplate as error:
        raise CatalogError(rule.name, key, str(error)) from error


class OfferedOperations:
    """`tools.operation.Operations` over the catalogue. It reads; proposing is another's."""

    def __init__(self, catalog: ActionCatalog) -> None:
        self._catalog = catalog

    def offered(self, product: str) -> Sequence[Operation]:
        return [
            Operation(
                name=action.rule.name,
                description=action.rule.description,
                reversible=action.rule.reversible,
                blast_radius=action.rule.blast_radius,
                params_schema=action.rule.params_schema,
            )
            for action in self._catalog.offered(product)
        ]
