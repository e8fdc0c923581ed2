"""A run on the user's own machine: the pods of a scaled-down job, started as the cluster would start them."""
