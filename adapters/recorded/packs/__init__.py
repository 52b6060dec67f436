"""Recorded incidents in files: one folder a case, as docs/evals.md describes them."""
