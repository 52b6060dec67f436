"""Calls that change something in Slack: their rate limits, their order, each message once."""
