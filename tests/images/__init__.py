"""Images: what the catalog says of them, and what registries and layouts have."""
