"""Images as registries and OCI layouts have them: found by tag, verified, looked into, never run."""
