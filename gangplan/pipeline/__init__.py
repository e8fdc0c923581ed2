"""The stages of a command, from specs to findings and a tree; `stages` alone knows their order."""
