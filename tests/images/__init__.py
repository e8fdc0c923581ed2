"""Images: what the catalog states about them, and what registries and layouts contain."""
