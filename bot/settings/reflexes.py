"""The shape of reflexes.toml: actions written as declarative rules that fire once, when confirmed.

A rule becomes an action like any other. There is no other way in which one fires.
"""

from pydantic import field_validator

from bot.settings.actions import ActionSettings, DeclaredSettings, GuardSettings
from bot.settings.section import Section


class ReflexGuards(GuardSettings):
    """`[reflexes.guards]`."""

    require_approval: bool = True

    @field_validator("require_approval")
    @classmethod
    def _always(cls, required: bool) -> bool:
        if not required:
            raise ValueError("must be true: nothing runs without Confirm")
        return required


class ReflexSettings(DeclaredSettings):
    """One `[[reflexes]]`."""

    trigger: str = "manual"
    guards: ReflexGuards = ReflexGuards()

    @field_validator("trigger")
    @classmethod
    def _by_hand(cls, trigger: str) -> str:
        if trigger != "manual":
            raise ValueError(
                'must be "manual": a confirmed proposal fires a rule, once, and nothing else does'
            )
        return trigger

    def as_action(self) -> "ReflexAction":
        declared = {name: getattr(self, name) for name in DeclaredSettings.model_fields}
        guards = {name: getattr(self.guards, name) for name in GuardSettings.model_fields}
        return ReflexAction(**declared, **guards)


class ReflexAction(ActionSettings):
    pass


class ReflexFile(Section):
    reflexes: tuple[ReflexSettings, ...] = ()
