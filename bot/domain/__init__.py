"""Pure values and state machines of the product."""
