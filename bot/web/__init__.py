"""The HTTP side: Slack's events, health, metrics, ingest."""
