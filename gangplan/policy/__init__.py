"""Policies of a cluster: which apply, what they report about objects, their test cases, and their export."""
