"""Recorded incidents of our own making: simulated, one for each kind of stack, written as packs are."""
