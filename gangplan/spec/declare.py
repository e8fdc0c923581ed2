"""How to declare a name that is not declared yet: a line to paste, and the file that it goes into."""

from __future__ import annotations

from collections.abc import Iterable

from gangplan.spec.near import find_similar, format_known_names, suggest_nearest

# The kind of a name -> how to declare a new one. {file} is that of the team or of the cluster.
_NEW = {
    "claim": "add {name}: {{accessModes: [ReadWriteMany]}} under claims: in {file}",
    "connection": "add {name}: {{endpoint: https://s3.example.com, bucket: BUCKET, secret: SECRET}} under connections: in {file}",
    "secret": "add {name} to secrets: in {file}",
    "service account": "its owner adds {name} to serviceAccounts: of the team in {file}",
    "volume": "its owner adds {name} to volumes: in {file}",
    "configMap": "add {name} to configMaps: in {file}",
    "endpoint": "its owner adds {name}: [{{cidr: 10.20.0.0/16, ports: [443]}}] under egress: in {file}",
    "node pool": "its owner adds {name}: {{count: 4, cpu: 60, memory: 240Gi}} under nodePools: in {file}",
    "GPU model": "its owner adds a pool with gpu: {{model: {name}, count: 8}} under nodePools: in {file}",
    "cohort": "add {name}: {{}} under cohorts: in {file}",
    "topology level": "its owner adds {{name: {name}, label: LABEL}} to topology: in {file}",
    "image": "its owner adds it to images/catalog.yaml: gangplan new image {name}",
    "team": "create it: gangplan new team {name}",
    "cluster": "create it: gangplan new cluster {name}",
    "job": "create it: gangplan new job {name}",
}


def suggest_known_or_new(what: str, name: str, known: Iterable[str], file: str = "") -> str:
    """Return a help that names the closest known name; if none is close, all of them and how to add one."""
    names = [*known]
    if what not in _NEW or find_similar(name, names):
        return suggest_nearest(name, names)
    return f"{format_known_names(names)}; or {_NEW[what].format(name=name, file=file)}."


def suggest_new(what: str, name: str, file: str) -> str:
    """Return a help that says how to add a name."""
    how = _NEW[what].format(name=name, file=file)
    return f"{how[0].upper()}{how[1:]}."
