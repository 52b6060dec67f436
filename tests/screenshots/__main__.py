"""`python -m tests.screenshots [cards] [demo]`: take the pictures of docs/images again.

Look at them.
"""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.screenshots.cards import take_cards
from tests.screenshots.chromium import chromium, installed
from tests.screenshots.demo import take_demo

IMAGES = Path(__file__).parents[2] / "docs" / "images"


async def main(words: Sequence[str]) -> int:
    """Both kinds, or those named."""
    binary = installed()
    if binary is None:
        sys.stderr.write("needs Chromium (Debian: apt-get install chromium)\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="kortex-chromium-", ignore_cleanup_errors=True) as data:
        async with chromium(binary, Path(data)) as tab:
            if not words or "cards" in words:
                (IMAGES / "cards").mkdir(exist_ok=True)
                await take_cards(tab, IMAGES / "cards" / "states.png")
            if not words or "demo" in words:
                await take_demo(tab, IMAGES)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
