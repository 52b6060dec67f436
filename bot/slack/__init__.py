"""The Slack edge: payloads in, messages out."""
