"""What Slack sends, as values: payloads, clicks, who sent them. Nothing here judges."""
