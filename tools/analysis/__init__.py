"""What can be computed from signals, lines, spans and cluster states: pure functions, no I/O."""
