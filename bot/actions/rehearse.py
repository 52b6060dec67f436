"""What is read of a target before its proposal is stored: the dry run, the count, the fingerprint.

A proposal whose target cannot be read is not made: its card could not tell what would happen.
"""

import asyncio
from dataclasses import replace

import orjson

from bot.actions.catalog import Action
from bot.actions.params import too_wide
from bot.actions.target import Target, TargetUnread
from bot.domain.channel import Channel, out_of_place
from bot.domain.proposal import Proposal
from tools.errors import CapabilityUnavailable, InvalidArguments


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
            f"{rule.name} would touch {objects.count} objects and may touch {rule.max_objects}; "
            "propose something narrower or tell people instead"
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
