"""A small, seeded simulator of a shop: its services, its load, its incidents, and what they leave."""
