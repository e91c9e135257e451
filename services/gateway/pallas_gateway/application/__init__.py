"""A web application of the project, served to people."""
