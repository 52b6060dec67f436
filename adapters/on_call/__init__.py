"""The people on call: from PagerDuty's schedules, or any address that answers in JSON."""
