"""What delivers a workspace: engines that sync rendered/, CI recipes, and owners of files.

Each is one module with a row (`ENGINE`), from which its command, its flags and its settings in gangplan.yaml
are built. To add one: the module, its templates, its name in `engine.NAMES`, its section of docs/gitops.md.
"""
