"""What the demo stands on. Nothing of the product imports it, but for the command."""
