"""An investigation without a model: the last resort that still brings evidence."""
