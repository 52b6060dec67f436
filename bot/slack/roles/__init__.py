"""Who holds a role, from Slack's user groups and from rotas."""
