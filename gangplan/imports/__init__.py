"""Jobs of other systems in; specs of the user's workspace, what else it must gain, and an account of every field out."""
