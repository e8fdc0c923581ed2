"""What delivers a workspace: engines that sync rendered/, recipes of CI, and owners of files.

Each is one module with a row (`ENGINE`), of which its command, its flags and its settings in gangplan.yaml
are made. To add one: the module, its templates, its name in `engine.NAMES`, its section of docs/gitops.md.
"""
