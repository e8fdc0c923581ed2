"""New workspaces and new files: from what was asked for to texts that were validated, all of them written or
none."""
