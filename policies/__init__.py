"""Policies shipped with gangplan (package data)."""
