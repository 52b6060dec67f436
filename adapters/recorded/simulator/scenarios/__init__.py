"""The incidents of the simulated shop, one module each, with their truth."""
