"""New workspaces and new files: what is asked for in, texts that were checked out, written all or none."""
