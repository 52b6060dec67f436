"""The simulated team's written pages."""

from adapters.recorded.simulator.pages import PAGES
from adapters.written_pages import PageSet, read_page


def recorded_pages() -> PageSet:
    """The same for every incident."""
    return PageSet([read_page(file, text) for file, text in PAGES])
