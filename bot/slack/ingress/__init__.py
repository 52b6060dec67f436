"""How Slack reaches Kortex: Socket Mode, HTTP, the installation, and what is delivered, as values."""
