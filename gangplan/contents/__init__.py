"""What a workspace has: names and the few fields that tell them apart, read without the models of the formats."""
