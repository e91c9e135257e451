"""The Helm chart, its values and their schema."""
