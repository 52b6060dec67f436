"""agents.sessions.* and assistant.threads.*: the status of a thread with the app.

Arguments, statuses and the warning: https://docs.slack.dev/ai/agent-sessions; the older methods:
https://docs.slack.dev/reference/methods/assistant.threads.setStatus and its siblings.
"""

from bot.demo.workspace.arguments import Arguments
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject, text_at
from bot.demo.workspace.methods import access
from bot.demo.workspace.people import Channel
from bot.demo.workspace.state import Workspace
from bot.demo.workspace.streams import SESSION_STATUSES

_UNSUBSCRIBED = "missing_agent_session_stopped_event_subscription"
_MAX_PROMPTS = 4  # docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts
_MAX_LOADING = 10  # docs.slack.dev/reference/methods/assistant.threads.setStatus


def set_status(workspace: Workspace, arguments: Arguments) -> JsonObject:
    status = arguments.text("status")
    if status not in SESSION_STATUSES:
        raise SlackRefused(
            "invalid_arguments", ["must be a valid enum value [json-pointer:/status]"]
        )
    channel, thread_ts = _thread(workspace, arguments)
    session = workspace.sessions.update(
        channel.id, thread_ts, status=status, title=arguments.text("title")
    )
    warning: JsonObject = {}
    if status == "processing" and "agent_session_stopped" not in workspace.app.subscriptions:
        warning = {"warning": _UNSUBSCRIBED}
    return {"agent_status": session.status, "title": session.title} | warning


def set_line(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """assistant.threads.setStatus: a line of text; "" takes it away."""
    channel, thread_ts = _thread(workspace, arguments)
    lines = arguments.json("loading_messages")
    if isinstance(lines, list) and len(lines) > _MAX_LOADING:
        raise SlackRefused("invalid_arguments")
    workspace.sessions.update(channel.id, thread_ts, line=arguments.text("status"))
    return {}


def set_title(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """assistant.threads.setTitle."""
    channel, thread_ts = _thread(workspace, arguments)
    workspace.sessions.update(channel.id, thread_ts, title=arguments.text("title"))
    return {}


def set_prompts(workspace: Workspace, arguments: Arguments) -> JsonObject:
    """assistant.threads.setSuggestedPrompts; without a thread, for the whole conversation."""
    channel, _ = _thread(workspace, arguments)
    prompts = arguments.json("prompts")
    told = [each for each in prompts if isinstance(each, dict)] if isinstance(prompts, list) else []
    whole = all(text_at(each, "title") and text_at(each, "message") for each in told)
    if not told or len(told) > _MAX_PROMPTS or not whole:
        raise SlackRefused("invalid_arguments")
    workspace.sessions.prompts[channel.id] = tuple(told)
    return {}


def _thread(workspace: Workspace, arguments: Arguments) -> tuple[Channel, str]:
    channel = access.visible_channel(workspace, arguments.text("channel_id"))
    thread_ts = arguments.text("thread_ts")
    if thread_ts and workspace.timeline.get(channel.id, thread_ts) is None:
        raise SlackRefused("invalid_thread_ts")
    return channel, thread_ts
