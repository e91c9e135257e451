"""What is known of each agent, what follows from it, and what happened."""
