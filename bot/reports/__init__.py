"""Reports for operators: providers, tools, one incident, one part of a check."""
