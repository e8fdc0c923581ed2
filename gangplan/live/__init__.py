"""Clusters as they are now, for users with a kubeconfig: read or asked by dry run, never changed.

`access.py` is the only module that imports the `kubernetes` package, and only when a command connects; all
others are functions from the server's answers to facts, findings and lines.
"""
