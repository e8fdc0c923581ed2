"""What a change would do, between a Git revision and the workspace of today: for whoever reviews it."""
