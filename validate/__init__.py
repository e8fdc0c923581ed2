"""Checks that turn objects and a workspace into findings. They never raise on bad input and never fix it."""
