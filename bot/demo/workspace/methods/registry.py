"""Which function answers which method."""

from collections.abc import Callable, Mapping

from bot.demo.workspace.arguments import Arguments
from bot.demo.workspace.json_access import JsonObject
from bot.demo.workspace.methods import chat, conversations, people, views
from bot.demo.workspace.state import Workspace

Handler = Callable[[Workspace, Arguments], JsonObject]

# apps.connections.open needs the request's own address and is answered at the edge.
HANDLERS: Mapping[str, Handler] = {
    "auth.test": people.auth_test,
    "chat.delete": chat.delete,
    "chat.getPermalink": chat.get_permalink,
    "chat.postEphemeral": chat.post_ephemeral,
    "chat.postMessage": chat.post_message,
    "chat.update": chat.update,
    "conversations.history": conversations.history,
    "conversations.info": conversations.info,
    "conversations.members": conversations.members,
    "conversations.replies": conversations.replies,
    "reactions.add": people.add_reaction,
    "usergroups.list": people.group_list,
    "usergroups.users.list": people.group_users,
    "users.info": people.user_info,
    "users.lookupByEmail": people.user_by_email,
    "views.open": views.open_view,
    "views.publish": views.publish_view,
    "views.update": views.update_view,
}
