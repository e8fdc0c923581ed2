"""Jinja2 templates of the generators (package data)."""
