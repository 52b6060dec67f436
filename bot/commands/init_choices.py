"""What `kortex init` offers: `--help` shows it, and reads nothing else for that."""

from collections.abc import Mapping
from typing import Final

SLACK_API: Final = "https://slack.com/api/"
MODES: Final = ("socket", "http")
# Each with the variable of its key and a model of the shipped table.
MODELS: Final[Mapping[str, tuple[str, str]]] = {
    "anthropic": ("ANTHROPIC_API_KEY", "claude-sonnet-5"),
    "openai": ("OPENAI_API_KEY", "gpt-5.6-sol"),
}
TRIAGE: Final = "triage"
