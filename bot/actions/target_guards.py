"""Guards that read the target again: it must be what the card showed, and no larger."""

import orjson

from bot.actions.guard import PASSED, Judgement, Subject
from bot.actions.selectors import too_wide
from bot.actions.target import Target, TargetUnread, changes
from bot.domain.proposal import blast_rank


class WithinBlastRadius:
    """No wider than declared, in words and in counted objects, and than the card showed."""

    name = "blast_radius"

    def __init__(self, target: Target) -> None:
        self._target = target

    async def judge(self, subject: Subject) -> Judgement:
        """From the stored row, and counted anew."""
        reason = _in_words(subject)
        if reason is None:
            return await self._counted(subject)
        return Judgement(reason)

    async def _counted(self, subject: Subject) -> Judgement:
        row, rule = subject.row, subject.action.rule
        try:
            now = await self._target.objects(subject.action, row)
        except TargetUnread as error:
            return Judgement(error.message)
        if now is None:
            return PASSED
        if now.count > rule.max_objects:
            return Judgement(f"it would touch {now.count} objects and may touch {rule.max_objects}")
        if row.objects is None or now.count > row.objects:
            shown = "none" if row.objects is None else row.objects
            return Judgement(
                f"the card showed {shown} objects, now there are {now.count}", outdated=True
            )
        new = sorted(set(now.names) - set(row.object_names)) if row.object_names else []
        if new:
            return Judgement(f"the card did not show {', '.join(new)}", outdated=True)
        return Judgement(facts={"objects": now.count, "limit": rule.max_objects})


def _in_words(subject: Subject) -> str | None:
    declared = subject.action.rule.blast_radius
    row = subject.row
    if row.blast_radius != declared:
        return f"its blast radius is now declared as {declared}; the card said otherwise"
    claimed, allowed = blast_rank(row.model_blast_radius), blast_rank(declared)
    if claimed is not None and (allowed is None or claimed > allowed):
        return f"it may touch at most {declared}, and was expected to touch more"
    return too_wide(orjson.loads(row.params), subject.action.rule.free_text)


class SamePreview:
    """The dry run still says what the card showed."""

    name = "dry_run"

    def __init__(self, target: Target) -> None:
        self._target = target

    async def judge(self, subject: Subject) -> Judgement:
        """Run once more."""
        if not subject.action.rule.has_preview and not subject.row.preview:
            return PASSED
        try:
            now = await self._target.preview(subject.action, subject.row)
        except TargetUnread as error:
            return Judgement(error.message)
        if now == subject.row.preview:
            return PASSED
        told = changes(subject.row.preview, now)
        return Judgement(f"the dry run is not what the card showed: {told}", outdated=True)


class NotDrifted:
    """The target is still the one that was read for the card."""

    name = "drift"

    def __init__(self, target: Target) -> None:
        self._target = target

    async def judge(self, subject: Subject) -> Judgement:
        """Read once more."""
        row = subject.row
        try:
            now = await self._target.fingerprint(subject.action, row)
        except TargetUnread as error:
            return Judgement(error.message)
        if now == row.fingerprint:
            return Judgement(facts={"fingerprint": orjson.loads(now)} if now else {})
        return Judgement(
            f"the target has changed since the card was shown: {changes(row.fingerprint, now)}",
            facts={"then": row.fingerprint, "now": now},
            outdated=True,
        )
