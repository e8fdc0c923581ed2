"""The whole set in, sync configuration out: what a GitOps engine needs to apply rendered/."""
