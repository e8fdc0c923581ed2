"""Read images from registries and OCI layouts: find by tag, verify, look inside; nothing is run."""
