"""A service for coding agents, by the Model Context Protocol: what they may read, and, if allowed, ask for."""
