"""What people see in Slack: growing answers, cards, modals."""
