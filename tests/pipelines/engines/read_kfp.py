"""Show what the SDK makes of a pipeline on standard input; the Python of an environment with kfp runs this.

The answer has three things as JSON: the pipeline as the compiler of the SDK writes it again, the same one as
the compiler writes it from its own language, and the fields that the protocol buffers of the SDK read.
"""

import json
import sys
import tempfile
from pathlib import Path

import yaml
from google.protobuf import json_format
from kfp import compiler, components, dsl, kubernetes
from kfp.kubernetes import kubernetes_executor_config_pb2 as platform_pb2
from kfp.pipeline_spec import pipeline_spec_pb2


def compiled(pipeline):
    """Return the documents that the compiler writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pipeline.yaml"
        compiler.Compiler().compile(pipeline, str(path))
        return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def component(name, container):
    """Return a component in the SDK's own language, for a container of the pipeline."""

    def run():
        return dsl.ContainerSpec(
            image=container["image"], command=container["command"], args=container["args"]
        )

    run.__name__ = name
    return dsl.container_component(run)


def written_again(spec, platform):
    """Return the pipeline in the language of the SDK, as a person would write it after reading the file."""
    executors = spec["deploymentSpec"]["executors"]
    extras = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    parts = {
        name: component(name, executors[f"exec-{name}"]["container"]) for name in spec["root"]["dag"]["tasks"]
    }

    def whole():
        made = {}
        for name, task in spec["root"]["dag"]["tasks"].items():
            step = made[name] = parts[name]()
            step.after(*(made[one] for one in task.get("dependentTasks", [])))
            step.set_caching_options(False)
            container, extra = executors[f"exec-{name}"]["container"], extras[f"exec-{name}"]
            for one in container["env"]:
                step.set_env_variable(one["name"], one["value"])
            resources = container["resources"]
            step.set_cpu_request(resources["resourceCpuRequest"]).set_cpu_limit(resources["resourceCpuLimit"])
            step.set_memory_request(resources["resourceMemoryRequest"])
            step.set_memory_limit(resources["resourceMemoryLimit"])
            for one in extra.get("configMapAsVolume", []):
                kubernetes.use_config_map_as_volume(step, one["configMapName"], one["mountPath"])
            for one in extra.get("secretAsVolume", []):
                kubernetes.use_secret_as_volume(step, one["secretName"], one["mountPath"])
            for label, value in extra["podMetadata"]["labels"].items():
                kubernetes.add_pod_label(step, label, value)
            who = extra["securityContext"]
            kubernetes.set_security_context(
                step, int(who["runAsUser"]), int(who["runAsGroup"]), who["runAsNonRoot"]
            )

    whole.__name__ = spec["pipelineInfo"]["name"].replace("-", "_")
    return compiled(dsl.pipeline(whole, name=spec["pipelineInfo"]["name"]))


def read(spec, platform):
    """Return what the protocol buffers read; a field that they do not have is an error."""
    json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    return {
        name: json_format.MessageToDict(json_format.ParseDict(one, platform_pb2.KubernetesExecutorConfig()))
        for name, one in executors.items()
    }


def main():
    text = sys.stdin.read()
    spec, platform = yaml.safe_load_all(text)
    answer = {
        "again": compiled(components.load_component_from_text(text)),
        "written": written_again(spec, platform),
        "read": read(spec, platform),
    }
    print(json.dumps(answer))


main()
