"""Who the bot is in its workspace, and whose requests count as coming from there."""

from dataclasses import dataclass, field

from bot.domain.ids import TeamId, UserId


@dataclass(frozen=True, slots=True)
class SlackIdentity:
    """What `auth.test` said at start. `app_id` "" is unknown and then not checked."""

    team: TeamId
    bot_user: UserId
    bot_id: str
    app_id: str = ""
    enterprise: str = ""
    trusted_teams: frozenset[str] = field(default=frozenset())  # may ask although external

    def is_addressee(self, installed_team: str, api_app_id: str) -> bool:
        """Whether a request was meant for this installation of this app."""
        if self.app_id and api_app_id != self.app_id:
            return False
        return installed_team == self.team

    def is_external(self, team: str) -> bool:
        """Whether someone of that workspace came in through Slack Connect."""
        return team not in self.trusted_teams and team not in {self.team, self.enterprise or None}
