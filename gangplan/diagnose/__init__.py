"""What ended or holds up a run: saved objects, events and logs in; causes with evidence and cures out."""
