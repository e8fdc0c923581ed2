"""What a workspace has: names and the few fields that distinguish them, read without the models of the
formats."""
