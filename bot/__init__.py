"""The conversation, the policy, Slack, storage and wiring of Kortex."""
