"""How Slack reaches the bot: the Bolt app, Socket Mode, HTTP, and the checks at start."""
