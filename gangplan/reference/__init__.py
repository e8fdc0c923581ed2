"""The generated reference: pages of rules, fields, file formats and policies, for `gangplan explain` and
docs/."""
