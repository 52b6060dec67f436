"""A local Slack that speaks Slack's protocol on loopback: the demo's workspace and the tests' double."""
