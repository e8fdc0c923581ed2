"""The effects of a change, between a Git revision and the workspace of today, for its reviewers."""
