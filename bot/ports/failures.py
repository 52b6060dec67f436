"""What storage and a chat platform raise."""


class StorageUnavailable(Exception):
    """The database is locked, full, or gone; nothing was half-done."""


class DatabaseReplaced(StorageUnavailable):
    """The database's file was deleted or replaced while Kortex had it open. Its text names no path."""


class SurfaceGone(Exception):
    """The message, channel or membership is gone: end quietly, keep the record."""


class MessageGone(SurfaceGone):
    """A person deleted the message; its channel and thread exist."""


class SurfaceFailed(Exception):
    """The platform refused or cannot be reached now; `retryable`: whether trying again may help."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


class StepAbandoned(Exception):
    """A step that ended its process again and again is not run any more. Its text is its name."""
