"""The Python API: jobs as values, workspaces, and what the commands report about them (docs/python.md)."""
