"""What people write: the file formats `gangplan.dev/v1`, strict, every field documented in the model."""
