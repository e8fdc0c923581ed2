"""Sync configuration: what a GitOps engine needs to apply rendered/, built from the whole set."""
