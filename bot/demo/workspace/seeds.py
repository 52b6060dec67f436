"""The people and channels that a fresh local workspace has."""

from bot.demo.workspace.identity import AppIdentity
from bot.demo.workspace.people import Channel, Roster, User, UserGroup

RESPONDER = "U0RESPOND1"
SECOND_RESPONDER = "U0RESPOND2"
MEMBER = "U0MEMBER01"
GUEST = "U0GUEST001"
DEACTIVATED = "U0GONE0001"
STRANGER = "U0STRANGE1"
OTHER_BOT = "U0OTHERBT1"
STRANGER_TEAM = "T0PARTNER1"

CHECKOUT = "C0CHECKOUT"
PAYMENTS = "C0PAYMENTS"
QUIET = "C0QUIET001"
ARCHIVED = "C0ARCHIVED"
BOTLESS = "C0BOTLESS1"
DIRECT = "D0RESPOND1"

RESPONDERS = "S0RESPOND1"


def users(app: AppIdentity) -> list[User]:
    """One person of each kind that the access rules know, and the bot."""
    team = app.team_id
    return [
        User(RESPONDER, "mira", "Mira Okafor", team, title="On-call SRE", is_admin=True),
        User(SECOND_RESPONDER, "jonas", "Jonas Lind", team, title="SRE, secondary"),
        User(MEMBER, "priya", "Priya Raman", team, title="Product engineer"),
        User(GUEST, "sam", "Sam Doyle", team, title="Contractor (guest)", is_restricted=True),
        User(DEACTIVATED, "lee", "Lee Novak", team, title="Left the company", deleted=True),
        User(
            STRANGER, "alex.partner", "Alex Moreau", STRANGER_TEAM,
            title="Partner company", is_stranger=True,
        ),
        User(OTHER_BOT, "pagerbot", "Pager Bot", team, is_bot=True, bot_id="B0OTHERBT1"),
        User(app.bot_user_id, app.bot_name, "Kortex", team, is_bot=True, bot_id=app.bot_id),
    ]  # fmt: skip


def channels(app: AppIdentity) -> list[Channel]:
    """Three incident channels, an archived one, one without the bot, a direct message."""
    people = {RESPONDER, SECOND_RESPONDER, MEMBER, GUEST, STRANGER, OTHER_BOT, DEACTIVATED}
    everyone = frozenset(people | {app.bot_user_id})
    return [
        Channel(
            CHECKOUT, "incident-checkout", everyone,
            topic="Checkout is slow and some orders fail",
            suggestion="@kortex why is checkout slow?",
        ),
        Channel(PAYMENTS, "incident-payments", everyone, topic="Card payments time out", suggestion="@kortex why do payments time out?", is_ext_shared=True),
        Channel(QUIET, "incident-quiet", everyone, topic="No open incident", suggestion="@kortex is anything unusual here?"),
        Channel(ARCHIVED, "incident-closed", everyone, topic="Resolved", is_archived=True),
        Channel(BOTLESS, "random", frozenset(people), topic="Anything but incidents"),
        Channel(DIRECT, "", frozenset({RESPONDER, app.bot_user_id}), kind="im"),
    ]  # fmt: skip


def roster(app: AppIdentity) -> Roster:
    """All of it. The responders' group confirms in the incident channels."""
    groups = [UserGroup(RESPONDERS, "responders", "Responders", (RESPONDER, SECOND_RESPONDER))]
    return Roster.of(users(app), channels(app), groups)
