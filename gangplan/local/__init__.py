"""A run on one's own machine: the pods of a job made small, started as the cluster would start them."""
