"""What runs by the clock or on a signal: jobs, retention, reload."""
