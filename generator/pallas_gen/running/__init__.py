"""What runs -> how it differs from the plan: containers of a compose project, or the release in a namespace."""
