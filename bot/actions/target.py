"""Reading an action's target for the card and for the guards: redacted, capped, in words.

Nothing here can change the target: its probe has read-only credentials. A proposal with an
unreadable target is refused: its card could not show the effect.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import orjson
from pydantic import JsonValue

from adapters.control_plane.orders import would_send
from adapters.control_plane.port import ControlOrder, ExecutorKind, Objects, Probe, ProbeFailed
from bot.actions.catalog import Action
from bot.actions.params import too_wide
from bot.domain.channel import Channel, out_of_place
from bot.domain.proposal import Proposal, canonical
from bot.ports.platform import PlatformTraits
from tools.errors import CapabilityUnavailable, InvalidArguments
from tools.redactor import RedactionFailed, Redactor, redacted_json

MAX_NAMES: Final = 10
MAX_NAME_CHARS: Final = 80
MAX_SAID: Final = 500  # characters of a refusal's own words


class TargetUnread(Exception):
    """The target cannot be read, or says no; `refused` when it is the order that is wrong."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.refused = refused


class Target:
    """Dry run, count and fingerprint of one action's target. Every call raises TargetUnread."""

    def __init__(self, probe: Probe, redactor: Redactor, platform: PlatformTraits) -> None:
        self._platform = platform
        self._probe = probe
        self._redactor = redactor

    async def preview(self, action: Action, row: Proposal) -> str:
        """The dry run as canonical JSON text; a rehearsal sends no request."""
        if not action.rule.has_preview:
            return ""
        order = _order(action, row)
        try:
            rehearsal = order.endpoint.kind is ExecutorKind.REHEARSAL
            said = would_send(order) if rehearsal else await self._probe.dry_run(order)
        except ProbeFailed as error:
            raise self._unread("the dry run failed", error) from error
        if said is None:
            raise TargetUnread("the dry run failed: its answer cannot be shown")
        text = self._safe_json(orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode())
        if len(text) > self._platform.preview_chars:
            raise TargetUnread(
                "the dry run's preview is too long to show whole, so it could not be confirmed",
                refused=True,
            )
        return text

    async def objects(self, action: Action, row: Proposal) -> Objects | None:
        rule = action.rule
        if rule.count_param:
            return self._named(_in_params(rule.count_param, orjson.loads(row.params)))
        if not rule.endpoint.reads.count_url:
            return None
        try:
            return self._named(await self._probe.count(_order(action, row)))
        except ProbeFailed as error:
            raise self._unread("the affected objects cannot be counted", error) from error

    async def fingerprint(self, action: Action, row: Proposal) -> str:
        """The target's facts as canonical JSON text; empty when the action declares none."""
        if not action.rule.endpoint.reads.fingerprint_url:
            return ""
        try:
            facts = await self._probe.fingerprint(_order(action, row))
        except ProbeFailed as error:
            raise self._unread("the state of its target cannot be read", error) from error
        return self._safe_json(canonical(dict(facts)))

    def _named(self, found: Objects) -> Objects:
        names = (self._safe(name[:MAX_NAME_CHARS]) for name in found.names[:MAX_NAMES])
        return Objects(found.count, tuple(names))

    def _unread(self, what: str, error: ProbeFailed) -> TargetUnread:
        said = "" if error.body is None else f": {_text(error.body)[:MAX_SAID]}"
        return TargetUnread(f"{what}: {self._safe(error.message + said)}", refused=error.refused)

    def _safe_json(self, text: str) -> str:
        try:
            return redacted_json(text, self._redactor)
        except RedactionFailed as error:
            raise TargetUnread("the target's answer could not be redacted") from error

    def _safe(self, text: str) -> str:
        try:
            return self._redactor.redact(text)
        except RedactionFailed as error:
            raise TargetUnread("the target's answer could not be redacted") from error


def changes(before: str, after: str) -> str:
    """`config_hash was a1, is b2` for every fact that differs; both are JSON texts.

    Texts that are not objects appear whole.
    """
    then, now = _facts(before), _facts(after)
    if then is None or now is None:
        return f"it was {before or 'nothing'}, is {after or 'nothing'}"
    return "; ".join(
        f"{name} was {_fact(then, name)}, is {_fact(now, name)}"
        for name in sorted(then.keys() | now.keys())
        if then.get(name) != now.get(name)
    )


def _facts(text: str) -> Mapping[str, JsonValue] | None:
    facts = orjson.loads(text) if text else {}
    return facts if isinstance(facts, dict) else None


def _fact(facts: Mapping[str, JsonValue], name: str) -> str:
    return _text(facts[name]) if name in facts else "not there"


def _in_params(name: str, params: Mapping[str, JsonValue]) -> Objects:
    value = params.get(name)
    match value:
        case list() if value:
            return Objects(len({_text(each) for each in value}), tuple(map(_text, value)))
        case str() | int() if value and not isinstance(value, bool):
            return Objects(1, (_text(value),))
        case _:
            raise TargetUnread(f"the parameter {name} names no objects to count", refused=True)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _order(action: Action, row: Proposal) -> ControlOrder:
    return ControlOrder(
        endpoint=action.rule.endpoint,
        idempotency_key=row.id,
        action=row.action,
        product=row.product,
        params=orjson.loads(row.params),
        confirmed_by=row.decided_by or row.asked_by.user,
        dry_run=True,
    )


async def rehearsed(target: Target, action: Action, proposal: Proposal) -> Proposal:
    """The proposal with what its card has to show.

    Raises InvalidArguments for what may not be proposed, CapabilityUnavailable when the target
    cannot be read now.
    """
    rule = action.rule
    wide = too_wide(orjson.loads(proposal.params), rule.free_text)
    if wide is not None:
        raise InvalidArguments(f"params of {rule.name}: {wide}")
    try:
        async with asyncio.TaskGroup() as reading:
            facts = reading.create_task(target.fingerprint(action, proposal))
            counted = reading.create_task(target.objects(action, proposal))
            preview = reading.create_task(_preview(target, action, proposal))
    except* TargetUnread as errors:
        error = _first(errors)
        if error.refused:
            raise InvalidArguments(
                f"{rule.name} for {proposal.product}: {error.message}"
            ) from error
        raise CapabilityUnavailable(f"nothing was proposed: {error.message}") from error
    objects = counted.result()
    if objects is not None and objects.count > rule.max_objects:
        raise InvalidArguments(
            f"{rule.name} would touch {objects.count} objects; the limit is {rule.max_objects}; "
            "propose something narrower, or suggest it in words"
        )
    return replace(
        proposal,
        preview=preview.result(),
        objects=None if objects is None else objects.count,
        object_names=() if objects is None else objects.names,
        fingerprint=facts.result(),
    )


def placed(proposal: Proposal, channel: Channel) -> Proposal:
    """The proposal under the rules of its channel now.

    Raises InvalidArguments where nothing may be proposed for its product any more.
    """
    reason = out_of_place(channel, proposal.channel_name, proposal.product)
    if reason is not None:
        raise InvalidArguments(reason)
    return replace(proposal, confirm_roles=channel.rule.confirm, channel_name=channel.name)


async def _preview(target: Target, action: Action, proposal: Proposal) -> str:
    return await target.preview(action, proposal) if action.rule.has_preview else ""


def _first(errors: BaseExceptionGroup[TargetUnread]) -> TargetUnread:
    found = errors.exceptions[0]
    return found if isinstance(found, TargetUnread) else _first(found)
