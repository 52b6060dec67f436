"""The control plane: the one outside system that carries out confirmed actions."""
