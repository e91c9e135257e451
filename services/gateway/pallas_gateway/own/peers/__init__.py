"""Members of the fleet behind the gateway, as its own tools ask them."""
