"""The migrations are one line of numbered files; two of one number would hide each other."""

import re
from pathlib import Path

SCRIPTS = sorted((Path(__file__).parents[2] / "migrations" / "versions").glob("*.py"))
NAMED = re.compile(r'^(?:down_)?revision = "?(\w+)"?$', re.MULTILINE)


def test_each_migration_has_its_number_and_follows_the_previous_one() -> None:
    numbers = [script.name[:4] for script in SCRIPTS]

    named = [NAMED.findall(script.read_text(encoding="utf-8")) for script in SCRIPTS]

    assert named == [list(pair) for pair in zip(numbers, ["None", *numbers], strict=False)]
