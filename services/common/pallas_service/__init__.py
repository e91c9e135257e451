"""What every service of the kit needs as a process: sockets, HTTP limits, stopping, logs, tokens, files."""
