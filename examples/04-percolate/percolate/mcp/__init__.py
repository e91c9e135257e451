"""What clients and agents see of the memory."""
