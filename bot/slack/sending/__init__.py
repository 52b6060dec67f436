"""When a call that Slack counts may be made, and how a message gets out exactly once."""
