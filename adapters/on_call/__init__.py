"""Who is on call now: PagerDuty's schedules, or any address that answers in JSON."""
