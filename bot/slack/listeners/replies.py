"""The short texts the incoming side says to people. Plain Markdown; the surface escapes it."""

import structlog

from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.ports.platform import PrivateSurface
from bot.slack.api.calls import SlackCalls
from bot.slack.ingress.clicks import Click
from bot.slack.views.modals import refusal_view

HELP = (
    "Ask me why something is slow or broken. I read deploys, metrics, logs and traces, and I change "
    "nothing. When a change would help, I propose it. Nothing runs until an approver presses Confirm.\n"
    "Mention me in a channel or send me a direct message. "
    'Say "stop" in the thread to stop me; the results so far stay. Say "catch me up" in a thread or a '
    "channel for a summary: who said and did what, what is known, what is open."
)
# As in `app-manifest.yml`: a title, and its question.
PROMPTS = (
    ("What changed?", "What was deployed in the last hour, and did anything get worse since?"),
    ("What is unusual?", "Which of our services behave differently from yesterday?"),
    ("What can you do?", "What can you look at here, and who may confirm a change?"),
)
EVERYBODYS_HELP = (
    "`/kortex help` this text\n"
    "`/kortex chart <metric> <product> [range]` a chart, such as `chart p99_latency checkout last 2h`\n"
    "`/kortex status` active and queued turns, open proposals, the state of the freeze\n"
    "`/kortex sessions` conversations in the places that you see\n"
    "`/kortex proposals` open proposals, with links to their cards\n"
)
ADMINS_HELP = (
    "`/kortex budget` spending today, by person and place, with a forecast (admins)\n"
    "`/kortex providers` the models, their state and its reason (admins)\n"
    "`/kortex tools` the tools, their calls, and tools that failed to load (admins)\n"
    "`/kortex quality` ratings of answers, with reasons (admins)\n"
    "`/kortex freeze` the state of the freeze; `freeze on [reason]` stops every action, "
    "`freeze off` ends it (admins)\n"
    "`/kortex audit` the latest decisions and the state of the audit log (admins)"
)
COMMAND_HELP = EVERYBODYS_HELP + ADMINS_HELP
# The words before the names of the admin roles, by sub-command.
FOR_ADMINS = {
    "budget": "Only admins can see the budget",
    "providers": "Only admins can see the models",
    "tools": "Only admins can see the tools",
    "quality": "Only admins can see how answers were rated",
    "audit": "Only admins can see the audit log",
    "freeze": "Only admins can freeze actions",
}
NOT_HERE = (
    "A freeze covers every workspace. Only admins of the workspace that Kortex belongs to can "
    "set it."
)
NO_ADMINS = "no role is set for that (`[admins] roles`)"
NOT_CHECKED = "I could not check whether you are one of them. Try again."
CHART_USAGE = (
    "Name a metric and a product: `/kortex chart <metric> <product> [range]`, such as "
    "`/kortex chart p99_latency checkout last 2h`."
)
CHART_COMES = "Reading {metric} of {product}. Only you will see the chart here."
CHART_TOO_SLOW = "No chart: the metrics backend did not answer in time. Ask for a shorter range."
TOO_MANY_CHARTS = "Too many charts at once. Wait a minute and ask again."
NOTHING_RUNS = "Nothing is running here."
NOT_STOPPED = "Your stop was not stored. Press the button again."
EXTERNAL = "I only answer people of the workspace where I am installed. Ask a colleague there."
ABOUT_FILES = "What does the attached file show?"  # of a message that is nothing else
TOO_MANY = (
    "Too many questions at once: this one was not started. Wait a minute and ask again. Running "
    "questions continue."
)
NOT_STARTED = (
    "Your question was not started: I could not store it. I retry for some minutes; if nothing "
    "appears here, ask again."
)
GAVE_UP = "I could not store your question and have stopped trying. Nothing was started; ask again."
STALE_CARD = "This proposal is not open any more. Look for the newest card in the thread."
CLICK_NOT_STORED = "Nothing was started: I could not store your decision. Press the button again."
CLICK_TOO_SLOW = (
    "I could not finish in time. Check the card before you press again: it shows whether your "
    "decision counted."
)
FORM_NOT_OPENED = "The form did not open. Nothing was changed; press the button again."
NOT_EDITABLE = (
    "This proposal cannot be edited: its action is no longer declared, or its parameters are too "
    "long. Reject it and ask for a new one."
)
ANSWER_GONE = "I no longer have this answer on record, so nothing was counted."
THANKS = "Thank you. Press the other button if you change your mind."
REASON_NOT_ASKED = "Your vote counts. The form for the reason did not open; press the button again."
VOTE_CHANGED = "Your vote changed, so the reason was discarded."
VOTE_NOT_STORED = "Your vote was not counted: I could not store it. Press the button again."
REASON_NOT_STORED = "Your reason could not be stored. Your vote counts; send it again."
EVIDENCE_GONE = "I no longer have this result."
EVIDENCE_NOT_OPENED = "The result is not available now. Open it again."
CANNOT_AUDIT = "Not done: the audit log is not available. Try again later."
CANNOT_READ = "The figures are not available now. Try again later."


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
