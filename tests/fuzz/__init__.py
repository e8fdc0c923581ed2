"""Campaigns: laws that short tests hold on a few cases, and `make fuzz` on thousands."""
