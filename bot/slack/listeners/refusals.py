"""A press that did nothing is told in front of whoever pressed."""

import structlog

from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.ports.platform import PrivateSurface
from bot.slack.api.calls import SlackCalls
from bot.slack.ingress.clicks import Click
from bot.slack.views.modals import refusal_view

_log = structlog.stdlib.get_logger(__name__)


async def refuse(click: Click, text: str, api: SlackCalls, surface: PrivateSurface) -> None:
    """In a form; a private word in the thread where none can be opened."""
    if click.trigger_id:
        try:
            await api.call("views.open", trigger_id=click.trigger_id, view=refusal_view(text))
        except (SurfaceFailed, SurfaceGone) as error:
            _log.info("slack.refusal.not_opened", error=type(error).__name__)
        else:
            return
    await surface.whisper(click.place, click.person.user, text)
