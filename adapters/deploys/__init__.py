"""Deploys from the systems that make them: through webhooks, or by polling."""
