"""gangplan in Python: jobs as values, workspaces, and what the commands say of them (docs/python.md)."""
