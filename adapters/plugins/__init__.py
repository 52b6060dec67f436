"""Tools that operators declare in YAML: the manifest, its request, and the tool made of both."""
