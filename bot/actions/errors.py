"""The failures of the actions package.

ActionsError
└── CatalogError   an action as declared cannot work; found at start, never in a turn

What a model gets wrong is `tools.errors.InvalidArguments`; what a guard refuses is a value.
"""


class ActionsError(Exception):
    """Any failure of this package."""


class CatalogError(ActionsError):
    """A declared action cannot work. `action` and `key` say where, the message says why."""

    def __init__(self, action: str, key: str, message: str) -> None:
        super().__init__(f"action {action!r}: {key}: {message}")
        self.action = action
        self.key = key
