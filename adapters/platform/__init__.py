"""A developer platform (applications, resources, workflows) over HTTP."""
