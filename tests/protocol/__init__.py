"""The protocols of lease, redrive and batch, looked at from every state that they can reach."""
