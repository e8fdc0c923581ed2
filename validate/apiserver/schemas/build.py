"""Build the schema files of this folder: `python validate/apiserver/schemas/build.py [FOLDER OF DOWNLOADS]`.

Development only. It downloads pinned packages (or takes them from the folder), normalises their schemas, adds
the facts of constraints.yaml, kueue.yaml, mpi.yaml and addons.yaml, and writes kubernetes.json, jobset.json,
trainer.json, kueue.json, mpi.json and addons.json. Each file has every distinct definition once, by the first
minor that has it: {"versions": [...], "base": {...}, "kinds": {...}, "definitions": {name: {minor: schema or
null}}}.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from copy import deepcopy
from dataclasses import field
from pathlib import Path
from typing import Any

import yaml

from gangplan.model.support import JOBSET_LINES, KUBERNETES_LINES, KUEUE_LINES, TRAINER_LINES, parse_line_key
from gangplan.records import dataclass
from gangplan.validate.apiserver.schemas.overlay import Overlay, build_kueue_schema_definition
from gangplan.validate.apiserver.schemas.sources import (
    Definitions,
    SchemaBody,
    read_kubernetes_schemas,
    read_openapi_schemas_of_trainer,
)

HERE = Path(__file__).parent
PACKAGES = {
    "kubernetes": "kubernetes-validate==1.37.0",
    "trainer-2.1": "kubeflow-trainer-api==2.1.0",
    "trainer-2.2": "kubeflow-trainer-api==2.2.1",
    "trainer-2.3": "kubeflow-trainer-api==2.3.0",
}
MINORS = {
    "kubernetes": list(KUBERNETES_LINES),
    "jobset": list(JOBSET_LINES),
    "trainer": list(TRAINER_LINES),
    "kueue": list(KUEUE_LINES),
    "mpi": ["0.7", "0.8"],
    # The version of addons.yaml: its content does not depend on anything that a cluster file states.
    "addons": ["1"],
}
JOBSET_OF = {line: one.jobset.line for line, one in TRAINER_LINES.items()}
# The Kubernetes minor whose types are, field for field, those that Trainer's models and CRDs embed.
KUBERNETES_OF = {"2.1": "1.34", "2.2": "1.36", "2.3": "1.36"}
KUEUE_KUBERNETES = "1.34"
# The Kubernetes minor of the pod templates in the CRDs: for the MPI operator, the one in its go.mod.
BASES = {"mpi": {"0.7": "1.34", "0.8": "1.35"}, "addons": {"1": "1.34"}}
NAMES = {"mpi": "dns-label-1035", "addons": "dns-subdomain"}

BUILT_IN = {
    "v1": "core",
    "batch/v1": "batch",
    "networking.k8s.io/v1": "networking",
    "rbac.authorization.k8s.io/v1": "rbac",
    "scheduling.k8s.io/v1": "scheduling",
    "admissionregistration.k8s.io/v1": "admissionregistration",
    "resource.k8s.io/v1": "resource",
}
KINDS = {
    "v1": "Namespace ServiceAccount ConfigMap PersistentVolumeClaim ResourceQuota LimitRange Pod",
    "batch/v1": "Job CronJob",
    "networking.k8s.io/v1": "NetworkPolicy",
    "rbac.authorization.k8s.io/v1": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "scheduling.k8s.io/v1": "PriorityClass",
    "admissionregistration.k8s.io/v1": "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
    # Since 1.34.
    "resource.k8s.io/v1": "ResourceClaimTemplate",
}
MODELS = [
    "TrainerV1alpha1TrainJob",
    "TrainerV1alpha1TrainingRuntime",
    "TrainerV1alpha1ClusterTrainingRuntime",
]


@dataclass
class SchemaComponent:
    """The content of one file, before equal definitions of consecutive minors are merged."""

    name: str
    kinds: dict[str, str] = field(default_factory=dict)
    base: dict[str, dict[str, str]] = field(default_factory=dict)
    versions: dict[str, Definitions] = field(default_factory=dict)


def unpack_schema_packages(downloads: Path, work: Path) -> dict[str, Path]:
    """Unpack each package of PACKAGES, downloading it first if it is not in `downloads`."""
    out = {}
    for key, pin in PACKAGES.items():
        project, version = pin.split("==")
        pattern = f"{project.replace('-', '_')}-{version}-*.whl"
        if not list(downloads.glob(pattern)):
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(downloads), pin]
            subprocess.run(pip, check=True)
        (wheel,) = downloads.glob(pattern)
        out[key] = work / key
        zipfile.ZipFile(wheel).extractall(out[key])
    return out


def build_schema_of_api_kind(schema: SchemaBody, api_version: str, kind: str) -> SchemaBody:
    """Return a top-level definition: apiVersion and kind fixed, a name required, the status left open."""
    out = deepcopy(schema)
    properties = out["properties"]
    properties["apiVersion"] = {"enum": [api_version]}
    properties["kind"] = {"enum": [kind]}
    properties["metadata"] = {"$ref": "#/$defs/meta.v1.ObjectMeta", "required": ["name"]}
    if "status" in properties or "spec" in properties:
        properties["status"] = {"type": "object"}
    out["required"] = sorted({*out.get("required", ()), "apiVersion", "kind", "metadata"})
    return out


def build_kubernetes_schema_component(package: Path, shapes: dict[str, SchemaBody]) -> SchemaComponent:
    """Return the built-in kinds, and the shapes that every component uses."""
    out = SchemaComponent("kubernetes")
    for api_version, kinds in KINDS.items():
        group = BUILT_IN[api_version]
        for kind in kinds.split():
            out.kinds[f"{api_version}/{kind}"] = f"{group}.v1.{kind}"
    for minor in MINORS["kubernetes"]:
        definitions = read_kubernetes_schemas(package, minor)
        for gvk, name in out.kinds.items():
            if name in definitions:
                definitions[name] = build_schema_of_api_kind(definitions[name], *gvk.rsplit("/", 1))
        definitions |= {f"shape.{name}": deepcopy(shape) for name, shape in shapes.items()}
        out.versions[minor] = definitions
    return out


def build_trainer_schema_components(packages: dict[str, Path]) -> tuple[SchemaComponent, SchemaComponent]:
    """Return JobSet and Trainer, which the same package publishes."""
    jobset, out = SchemaComponent("jobset"), SchemaComponent("trainer")
    jobset.kinds = {"jobset.x-k8s.io/v1alpha2/JobSet": "jobset.v1alpha2.JobSet"}
    for model in MODELS:
        kind = model.removeprefix("TrainerV1alpha1")
        out.kinds[f"trainer.kubeflow.org/v1alpha1/{kind}"] = f"trainer.v1alpha1.{kind}"
    for minor in MINORS["trainer"]:
        definitions = read_openapi_schemas_of_trainer(
            packages[f"trainer-{minor}"], [*MODELS, "JobsetV1alpha2JobSet"]
        )
        for component in (jobset, out):
            for gvk, name in component.kinds.items():
                definitions[name] = build_schema_of_api_kind(definitions[name], *gvk.rsplit("/", 1))
        jobset.versions[JOBSET_OF[minor]] = {n: d for n, d in definitions.items() if n.startswith("jobset.")}
        jobset.base[JOBSET_OF[minor]] = {"kubernetes": KUBERNETES_OF[minor]}
        own = ("trainer.", "scheduling.v1beta1.", "autoscaling.")
        out.versions[minor] = {name: d for name, d in definitions.items() if name.startswith(own)}
        out.base[minor] = {"kubernetes": KUBERNETES_OF[minor], "jobset": JOBSET_OF[minor]}
    return jobset, out


def build_kueue_schema_component(text: dict[str, Any]) -> SchemaComponent:
    """Return Kueue from kueue.yaml."""
    out = SchemaComponent("kueue")
    for minor in MINORS["kueue"]:
        version = parse_line_key(minor)
        definitions = {
            f"kueue.{name}": build_kueue_schema_definition(fields, version)
            for name, fields in text["shared"].items()
        }
        for api in ("v1beta1", "v1beta2"):
            for name, fields in text[api].items():
                full = f"kueue.{api}.{name}"
                definitions[full] = build_kueue_schema_definition(fields, version)
                if "spec" in fields or name == "WorkloadPriorityClass":
                    out.kinds[f"kueue.x-k8s.io/{api}/{name}"] = full
                    definitions[full] = build_kueue_kind_schema(definitions[full], api, name, text["names"])
        out.versions[minor] = definitions
        out.base[minor] = {"kubernetes": KUEUE_KUBERNETES}
    return out


def build_kueue_kind_schema(schema: SchemaBody, api: str, name: str, names: dict[str, str]) -> SchemaBody:
    """Return a top-level Kueue definition with the pattern of its name."""
    out = build_schema_of_api_kind(schema, f"kueue.x-k8s.io/{api}", name)
    shape = names.get(name, "dns-subdomain")
    out["properties"]["metadata"]["properties"] = {"name": {"$ref": f"#/$defs/shape.{shape}"}}
    # A Cohort without a spec is a root without quota of its own, and Kueue accepts it (v0.19.2).
    if "spec" in out["properties"] and name != "Cohort":
        out["required"] = sorted({*out["required"], "spec"})
    return out


def build_handwritten_schema_component(component: str, text: dict[str, Any]) -> SchemaComponent:
    """Return kinds whose spec is written by hand: the MPI operator's in mpi.yaml, add-ons' in addons.yaml."""
    out = SchemaComponent(component, kinds=dict(text["kinds"]))
    for minor in MINORS[component]:
        definitions = {name: deepcopy(shape) for name, shape in text.get("shapes", {}).items()}
        version = parse_line_key(minor)
        definitions |= {
            name: build_kueue_schema_definition(fields, version)
            for name, fields in text["definitions"].items()
        }
        for gvk, name in out.kinds.items():
            definitions[name] = build_schema_of_api_kind(definitions[name], *gvk.rsplit("/", 1))
            definitions[name]["required"] = sorted({*definitions[name]["required"], "spec"})
            named = {"name": {"$ref": f"#/$defs/shape.{NAMES[component]}"}}
            definitions[name]["properties"]["metadata"]["properties"] = named
        out.versions[minor] = definitions
        out.base[minor] = {"kubernetes": BASES[component][minor]}
    return out


def list_referenced_api_definitions(schema: Any) -> set[str]:
    """Return the names of the definitions that a schema refers to."""
    if isinstance(schema, dict):
        found = set().union(*(list_referenced_api_definitions(value) for value in schema.values()))
        if isinstance(schema.get("$ref"), str):
            found.add(schema["$ref"].removeprefix("#/$defs/"))
        return found
    if isinstance(schema, list):
        return set().union(*(list_referenced_api_definitions(value) for value in schema))
    return set()


def merge_component_definitions(
    components: dict[str, SchemaComponent], component: SchemaComponent, minor: str
) -> Definitions:
    """Return the component's definitions at a minor, in addition to those of its base."""
    out: Definitions = {}
    for name, version in component.base.get(minor, {}).items():
        out |= components[name].versions[version]
    return out | component.versions[minor]


def list_api_definitions_reached_by_kinds(
    components: dict[str, SchemaComponent],
) -> dict[tuple[str, str], set[str]]:
    """Return the definitions that some kind reaches, by component and minor."""
    out: dict[tuple[str, str], set[str]] = {}
    for component in components.values():
        for minor in component.versions:
            known = merge_component_definitions(components, component, minor)
            todo, seen = [name for name in component.kinds.values() if name in known], set[str]()
            while todo:
                name = todo.pop()
                if name not in seen:
                    seen.add(name)
                    todo += list_referenced_api_definitions(known[name])
            for owner, version in {**component.base.get(minor, {}), component.name: minor}.items():
                theirs = components[owner].versions[version].keys()
                out.setdefault((owner, version), set()).update(seen & theirs)
    return out


def fold_component_definitions(
    component: SchemaComponent, keep: dict[tuple[str, str], set[str]]
) -> dict[str, Any]:
    """Return the content of the component's file: each definition at the minors where it changes."""
    definitions: dict[str, dict[str, SchemaBody | None]] = {}
    minors = sorted(component.versions, key=parse_line_key)
    for name in sorted(set().union(*(keep[component.name, minor] for minor in minors))):
        last: SchemaBody | None = None
        for minor in minors:
            now = component.versions[minor].get(name) if name in keep[component.name, minor] else None
            if now != last:
                definitions.setdefault(name, {})[minor] = now
                last = now
    return {
        "versions": minors,
        "base": component.base,
        "kinds": dict(sorted(component.kinds.items())),
        "definitions": definitions,
    }


def format_one_schema_per_line(content: dict[str, Any]) -> str:
    """Format compact JSON with one definition per line, so that diffs are readable."""
    head = {key: value for key, value in content.items() if key != "definitions"}
    rows = [json.dumps(head, separators=(",", ":"), sort_keys=True)[:-1] + ',"definitions":{']
    for name, variants in content["definitions"].items():
        row = json.dumps({name: variants}, separators=(",", ":"), sort_keys=True)
        rows.append(row[1:-1] + ",")
    rows[-1] = rows[-1].rstrip(",")
    return "\n".join([*rows, "}}"]) + "\n"


def build_apiserver_schema_files(downloads: Path) -> dict[str, str]:
    """Return the text of every schema file by its name."""
    facts = yaml.safe_load((HERE / "constraints.yaml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as work:
        packages = unpack_schema_packages(downloads, Path(work))
        parts = [
            build_kubernetes_schema_component(packages["kubernetes"], facts["shapes"]),
            *build_trainer_schema_components(packages),
        ]
    parts.append(
        build_kueue_schema_component(yaml.safe_load((HERE / "kueue.yaml").read_text(encoding="utf-8")))
    )
    for name in ("mpi", "addons"):
        parts.append(
            build_handwritten_schema_component(
                name, yaml.safe_load((HERE / f"{name}.yaml").read_text("utf-8"))
            )
        )
    components = {part.name: part for part in parts}
    overlay = Overlay()
    for block in facts["components"]:
        component = components[block["component"]]
        for minor in block.get("versions", component.versions):
            known = merge_component_definitions(components, component, minor)
            overlay.apply(component.versions[minor], known, block["definitions"])
    if overlay.missed():
        raise SystemExit(f"constraints.yaml: no version has these fields: {overlay.missed()}")
    keep = list_api_definitions_reached_by_kinds(components)
    return {
        f"{part.name}.json": format_one_schema_per_line(fold_component_definitions(part, keep))
        for part in parts
    }


def write_apiserver_schemas() -> None:
    """Write the files next to this script."""
    with tempfile.TemporaryDirectory() as scratch:
        downloads = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch)
        for name, text in build_apiserver_schema_files(downloads).items():
            (HERE / name).write_text(text, encoding="utf-8")
            print(f"{name}: {len(text) / 1000:.0f} KB")


if __name__ == "__main__":
    write_apiserver_schemas()
