"""What stands in for the world: a model that follows a script."""
