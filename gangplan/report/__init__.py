"""Findings in, text for people or machines out. Reports never decide an exit code."""
