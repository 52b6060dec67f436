"""agents.sessions.* and assistant.threads.*: the status of a thread with the app.

Arguments, statuses and the warning: https://docs.slack.dev/ai/agent-sessions; the older methods:
https://docs.slack.dev/reference/methods/assistant.threads.setStatus and its siblings.
"""

from bot.demo.workspace.arguments import Arguments
from bot.demo.workspace.errors import SlackRefused
from bot.demo.workspace.json_access import JsonObject, objects_at
from bot.demo.workspace.methods import access
from bot.demo.workspace.people import Channel
from bot.demo.workspace.state import Workspace

_UNSUBSCRIBED = "missing_agent_session_stopped_event_subscription"


def set_status(workspace: Workspace, arguments: Arguments) -> JsonObject:
    status = arguments.text("status")
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
    workspace.sessions.prompts[channel.id] = tuple(objects_at(dict(arguments.values), "prompts"))
    return {}


def _thread(workspace: Workspace, arguments: Arguments) -> tuple[Channel, str]:
    channel = access.visible_channel(workspace, arguments.text("channel_id"))
    thread_ts = arguments.text("thread_ts")
    if thread_ts and workspace.timeline.get(channel.id, thread_ts) is None:
        raise SlackRefused("invalid_thread_ts")
    return channel, thread_ts
