"""What goes through the gateway, for people who watch: calls under way, the last refusals and confirmations."""
