"""What operators are told: providers, tools, one incident, one part of a check."""
