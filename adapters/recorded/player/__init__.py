"""Plays a recorded incident: the backends that tools ask, from a pack or from the simulator."""
