"""What the bot does with what people say, press and command in Slack."""
