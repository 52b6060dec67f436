"""The short texts the incoming side says to people. Plain Markdown; the surface escapes it."""

import structlog

from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.ports.platform import PrivateSurface
from bot.slack.api.calls import SlackCalls
from bot.slack.ingress.clicks import Click
from bot.slack.views.modals import refusal_view

HELP = (
    "Ask me why something is slow or broken and I look at deploys, metrics, logs and traces. "
    "I only read. When a change would help I propose it, and nothing happens until one of the "
    "people who may decide here presses Confirm.\n"
    "Mention me in a channel, or write to me directly. "
    'Say "stop" in the thread and I stop; what I found stays. Say "catch me up" in a thread or a '
    "channel and I tell who said and did what, what is known and what is open."
)
# As in `app-manifest.yml`: a title, and what is asked by pressing it.
PROMPTS = (
    (
        "What changed?",
        "What was deployed in the last hour, and did anything get worse since?",
    ),
    ("What is unusual?", "Which of our services behave differently from yesterday?"),
    ("What can you do?", "What can you look at here, and who may confirm a change?"),
)
EVERYBODYS_HELP = (
    "`/kortex help` this text\n"
    "`/kortex chart <metric> <product> [range]` how it went, such as `chart p99_latency checkout last 2h`\n"
    "`/kortex status` what runs and who waits, open proposals, whether actions are frozen\n"
    "`/kortex sessions` the conversations of places that you see\n"
    "`/kortex proposals` what can be decided now, with links to the cards\n"
)
ADMINS_HELP = (
    "`/kortex budget` what was spent today, by whom and where, and where the day is heading (admins)\n"
    "`/kortex providers` which models can be used, and why not (admins)\n"
    "`/kortex tools` every tool, how its calls went, and what was not loaded (admins)\n"
    "`/kortex quality` how answers were judged, and why not well (admins)\n"
    "`/kortex freeze` whether every action is stopped; `freeze on [reason]`, `freeze off` stop them, let "
    "them run again (admins)\n"
    "`/kortex audit` what was decided last, and where the trail stands (admins)"
)
COMMAND_HELP = EVERYBODYS_HELP + ADMINS_HELP
# What stands before the names of the admin roles, by sub-command.
FOR_ADMINS = {
    "budget": "The budget is shown to admins",
    "providers": "The models in use are shown to admins",
    "tools": "The tools are shown to admins",
    "quality": "How answers were judged is shown to admins",
    "audit": "The audit trail is shown to admins",
    "freeze": "Actions are frozen, and let run again, by admins",
}
NOT_HERE = (
    "Actions are frozen, and let run again, for every workspace at once: by the admins of the "
    "workspace that Kortex belongs to."
)
NO_ADMINS = "no role is set for that (`[admins] roles`)"
NOT_CHECKED = "I could not check whether you are one of them. Try again."
CHART_USAGE = (
    "Say which metric of which product: `/kortex chart <metric> <product> [range]`, such as "
    "`/kortex chart p99_latency checkout last 2h`."
)
CHART_COMES = "Reading {metric} of {product}: the chart comes here in a moment, for you alone."
CHART_TOO_SLOW = "No chart: the metrics did not answer in time. Ask for a shorter range."
TOO_MANY_CHARTS = "You ask for charts faster than I can draw them. Wait a minute and ask again."
NOTHING_RUNS = "Nothing is running here."
NOT_STOPPED = "I could not pass on your stop. Press the button again."
EXTERNAL = (
    "I only work for people of the workspace I am installed in. "
    "Ask a colleague there to put the question to me."
)
ABOUT_FILES = "What does the attached file show?"  # of a message that is nothing else
TOO_MANY = (
    "You are asking faster than I can answer: this question was not started. "
    "Wait a minute and ask again; questions already running go on."
)
NOT_STARTED = (
    "Your question has not been started: I could not store it. "
    "I try again by myself for some minutes; if nothing appears here, ask again."
)
GAVE_UP = "I could not store your question and have stopped trying. Nothing was started; ask again."
STALE_CARD = "This button belongs to no open proposal here. Look for its newest card in the thread."
CLICK_NOT_STORED = "Nothing was started: I could not store your decision. Press the button again."
CLICK_TOO_SLOW = (
    "I could not finish in time. Look at the card before you press again: "
    "it shows whether your decision counted."
)
FORM_NOT_OPENED = "The form did not open. Nothing was changed; press the button again."
NOT_EDITABLE = (
    "This proposal cannot be edited in a form: its action is not declared any more, or its "
    "parameters are too long. Reject it and ask for a new one."
)
ANSWER_GONE = "I no longer have this answer on record, so nothing was counted."
THANKS = "Thank you, noted. Press the other button if you change your mind."
REASON_NOT_ASKED = "Noted. The form that asks why did not open; press the button again to say it."
VOTE_CHANGED = "Your vote on this answer is not the same any more, so the reason was not kept."
VOTE_NOT_STORED = "Your vote was not counted: I could not store it. Press the button again."
REASON_NOT_STORED = "Your reason could not be stored. Your vote counts; send it again."
EVIDENCE_GONE = "I no longer have this result."
EVIDENCE_NOT_OPENED = "The result could not be shown now. Open it again."
CANNOT_AUDIT = "Not done: the audit trail cannot be written now. Try again later."
CANNOT_READ = "The numbers cannot be read now. Try again later."


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
