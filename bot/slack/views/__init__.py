"""What people see in Slack: answers, cards, forms, charts."""
