"""Rights that reach too far: an unknown channel, another product, an unverified role."""

from tests.mutants.mutant import Mutant

_LOOKING_UP = "tests/unit/bot/slack/listeners/test_looking_up.py::"
_NAMES = "tests/unit/bot/slack/api/test_channel_names.py::"
_PERMISSIONS = "tests/unit/bot/chat/test_turn_permissions.py::"
_PRODUCTS = "tests/unit/tools/test_products.py::"
_ROLES = "tests/unit/bot/slack/roles/test_directory.py::"
_AUTHORITY = "tests/unit/bot/chat/test_authority.py::"

RIGHTS_MUTANTS = (
    Mutant(
        "rights: a channel without a name is one like any other",
        "bot/domain/channel.py",
        "        return narrowest(rules)\n",
        '        channel_name = "unknown"\n',
        (f"{_PERMISSIONS}test_an_unnamed_channel_uses_the_common_tools_and_is_reported",),
    ),
    Mutant(
        "rights: the star is direct messages too",
        "tools/policy.py",
        "        return bool(channel) and channel == glob\n",
        "        return bool(channel) and fnmatchcase(channel, glob)\n",
        (f"{_LOOKING_UP}test_the_star_does_not_match_direct_messages",),
    ),
    Mutant(
        "rights: a press goes by a name of any age",
        "bot/slack/api/channels.py",
        "await self._read(place, DECIDING_S, DECIDING_S)",
        "await self._read(place, DECIDING_S, KEPT_S)",
        (f"{_NAMES}test_no_decision_uses_a_name_older_than_a_minute",),
    ),
    Mutant(
        "rights: an answer that a rename overtook is kept",
        "bot/slack/api/channels.py",
        "if await self.store.keep(place, found.name, kept):",
        "if await self.store.keep(place, found.name, kept) or True:",
        (f"{_NAMES}test_an_answer_overtaken_by_a_rename_is_discarded",),
    ),
    Mutant(
        "rights: a press goes by the roles on the card",
        "bot/actions/judge.py",
        "self._lacking(proposal, person, channel.rule.confirm)",
        "self._lacking(proposal, person, proposal.confirm_roles)",
        (f"{_LOOKING_UP}test_a_problem_at_the_press_runs_nothing_and_is_reported",),
    ),
    Mutant(
        "rights: the channel is not looked at before the order leaves",
        "bot/actions/guards.py",
        '            reason = "no role can decide in this channel any more"\n        return Judgement(reason or "")\n',
        '            reason = "no role can decide in this channel any more"\n        return PASSED\n',
        (f"{_LOOKING_UP}test_a_problem_after_the_press_runs_nothing",),
    ),
    Mutant(
        "rights: of several names in a call the first is looked at",
        "tools/products.py",
        "for each in _names(getattr(arguments, name, None)) if each != ANY_PRODUCT]",
        "for each in _names(getattr(arguments, name, None))[:1] if each != ANY_PRODUCT]",
        (f"{_PRODUCTS}test_the_runner_denies_a_product_outside_the_scope_with_the_reason",),
    ),
    Mutant(
        "rights: a call that names no product is inside",
        "tools/products.py",
        "    if scope.arguments and left_out == list(scope.arguments) and not scope.narrows:\n",
        "    if False:\n",
        (f"{_PRODUCTS}test_the_runner_denies_a_product_outside_the_scope_with_the_reason",),
    ),
    Mutant(
        "rights: a role that cannot be looked up is held",
        "bot/slack/roles/directory.py",
        "frozenset(each for each, why in lacking.items() if why is None)",
        "frozenset(each for each, why in lacking.items() if why in (None, CANNOT_CHECK))",
        (f"{_ROLES}test_a_role_that_cannot_be_looked_up_is_not_held_and_is_reported",),
    ),
    Mutant(
        "rights: the runner asks nobody",
        "bot/chat/turn_permissions.py",
        "return None if policy.permits(contract, context) else NOT_YOURS",
        "return None",
        (f"{_AUTHORITY}test_a_turn_sees_and_runs_what_the_asker_s_roles_give",),
    ),
)
