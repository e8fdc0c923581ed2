"""Clusters as they are now, for those who have a kubeconfig: read, asked by dry run, never written.

`access.py` is the only module that imports the `kubernetes` package, and only when a command connects; all
others are functions from the server's answers to facts, findings and lines.
"""
