"""What one agent is told: by agents.yaml, the environment, secret files and the configuration of fast-agent."""
