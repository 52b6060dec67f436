"""Backends of logs, metrics, traces and deploys."""
