"""What the simulated shop's team wrote down: file and Markdown."""

from importlib import resources
from typing import Final

from adapters.written_pages import PageSet, read_page

_FOLDER: Final = resources.files(__package__).joinpath("written")
PAGES: Final = tuple(
    (file, _FOLDER.joinpath(file).read_text(encoding="utf-8"))
    for file in (
        "runbooks/checkout-slow.md",
        "runbooks/connection-pool-exhausted.md",
        "patterns/postgres.md",
        "patterns/stateless-service.md",
    )
)


def recorded_pages() -> PageSet:
    """The same for every incident."""
    return PageSet([read_page(file, text) for file, text in PAGES])
