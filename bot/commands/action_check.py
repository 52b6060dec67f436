"""`kortex check` says which actions are declared."""

from collections.abc import Sequence

from adapters.llm.triage.case import ROLLBACK_ACTION
from adapters.llm.triage.provider import NAME as TRIAGE
from bot.actions.catalog import ActionCatalog, CatalogError
from bot.reports.finding import Finding
from bot.settings.model import Settings
from bot.settings.reflexes import ReflexAction
from bot.wiring import rules


def check_actions(settings: Settings) -> Sequence[Finding]:
    """Which may be proposed, and whether who answers would propose one. Asks nobody."""
    try:
        catalog = ActionCatalog(rules.action_rules(settings))
    except CatalogError as error:
        return [Finding("actions", False, str(error))]
    own = [each.rule.name for each in catalog.all()]
    names = ", ".join(own)
    reflexes = sum(isinstance(action, ReflexAction) for action in settings.actions)
    if reflexes:
        names += f"; {reflexes} of them in {settings.reflexes.file}, fired by a Confirm only"
    found = [Finding("actions", True, names or "none: nothing can be proposed", bool(names))]
    if own and settings.llm.default_provider == TRIAGE and ROLLBACK_ACTION not in own:
        words = f"triage proposes {ROLLBACK_ACTION} alone, and no action has that name"
        mend = f"Name the one that rolls a deploy back {ROLLBACK_ACTION}, or let a model answer."
        found.append(Finding("actions of triage", False, words, warning=True, mend=mend))
    return found
