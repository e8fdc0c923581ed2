"""The file formats `gangplan.dev/v1` that people write: strict, with every field documented in the model."""
