"""Diagnose what ended or holds up a run, from saved objects, events and logs."""
