"""Campaigns: laws that the tests check on a few cases, and `make fuzz` on thousands."""
