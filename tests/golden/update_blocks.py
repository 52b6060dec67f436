"""Write `tests/golden/blocks/*.json` again: `python -m tests.golden.update_blocks`.

Review the diff.
"""

from pathlib import Path

from tests.golden.slack_views import as_json, golden

BLOCKS = Path(__file__).parent / "blocks"


def main() -> None:
    """Replace every file; those no longer made are removed."""
    BLOCKS.mkdir(exist_ok=True)
    for old in BLOCKS.glob("*.json"):
        old.unlink()
    for name, parts in golden().items():
        (BLOCKS / f"{name}.json").write_text(as_json(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
