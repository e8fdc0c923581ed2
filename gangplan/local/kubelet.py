"""What the kubelet does before a container starts: it expands command words and variables, and mounts files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def expand_like_kubelet(text: str, env: Mapping[str, str] | None = None) -> str:
    """Replace `$(NAME)` and `$$`, as k8s.io/kubernetes third_party/forked/golang/expansion does (v1.34).

    A variable that is not in `env` stays as written. Without `env`, every variable has a value.
    """
    data, out, cursor = text.encode(), b"", 0
    while cursor < len(data):
        following = data[cursor + 1 : cursor + 2]
        if data[cursor : cursor + 1] != b"$" or not following:
            out += data[cursor : cursor + 1]
            cursor += 1
        elif following == b"(" and b")" in data[cursor:]:
            end = data.index(b")", cursor)
            name = data[cursor + 2 : end].decode()
            out += ("VALUE" if env is None else env.get(name, f"$({name})")).encode()
            cursor = end + 1
        elif following == b"$":
            out += b"$"
            cursor += 2
        else:
            out += b"$" + chr(following[0]).encode()  # Go's string(byte) turns a byte into a letter
            cursor += 2
    return out.decode()


def expand_local_container_like_kubelet(
    container: Mapping[str, Any], given: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a container with its environment, command and arguments as its first process gets them.

    `given` are the values of variables that come from elsewhere (secrets, fields of the pod), by name.
    """
    env: dict[str, str] = {}
    for variable in container.get("env", ()):
        name = variable["name"]
        if given is not None and "valueFrom" in variable:
            env[name] = given[name]
        else:
            env[name] = expand_like_kubelet(variable.get("value", ""), env)
    return {
        **container,
        "env": env,
        "command": [expand_like_kubelet(word, env) for word in container["command"]],
        "args": [expand_like_kubelet(word, env) for word in container.get("args", ())],
    }


def read_config_map_for_local_mount(
    pod: Mapping[str, Any], path: str, bodies: Iterable[Mapping[str, Any]]
) -> tuple[str, dict[str, str]]:
    """Return the ConfigMap that a pod's first container mounts at a path: its name, and its files by name.

    Raises LookupError if nothing is mounted there, or if the ConfigMap is not among `bodies`: the kubelet
    would not start the container.
    """
    mounts = {one["mountPath"]: one["name"] for one in pod["containers"][0].get("volumeMounts", ())}
    volumes = {one["name"]: one for one in pod.get("volumes", ())}
    name: str = volumes[mounts[path]]["configMap"]["name"]
    maps = {one["metadata"]["name"]: one["data"] for one in bodies if one["kind"] == "ConfigMap"}
    return name, dict(maps[name])
