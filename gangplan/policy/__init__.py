"""The policies of a cluster: which apply, what they say of objects, their cases, their export."""
