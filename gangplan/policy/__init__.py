"""A workspace's policies: what they say of rendered objects, their cases, and how they reach a cluster."""
