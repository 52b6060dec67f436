"""How Slack reaches Kortex: Socket Mode, HTTP, installation, and the deliveries as values."""
