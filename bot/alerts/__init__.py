"""Alerts from other systems: how each sender's are read, and the threads they open."""
