"""Deploys as the systems that make them tell of them: what their webhooks hold, and asked for."""
