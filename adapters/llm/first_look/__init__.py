"""The computed picture that a model starts an investigation from: which calls, and what is read of them."""
