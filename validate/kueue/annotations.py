"""Topology annotations of a pod template: the request they make, and the errors of Kueue's webhooks.

Source: Kueue v0.19.2 pkg/controller/jobframework/{tas,tas_validation}.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from gangplan.model.support import KueueLine
from gangplan.records import dataclass
from gangplan.validate.apiserver.forms import is_qualified
from gangplan.validate.kueue.model import PodSet

PREFIX = "kueue.x-k8s.io/podset-"
REQUIRED, PREFERRED, UNCONSTRAINED = (
    f"{PREFIX}required-topology",
    f"{PREFIX}preferred-topology",
    f"{PREFIX}unconstrained-topology",
)
SLICE, SLICE_SIZE = f"{PREFIX}slice-required-topology", f"{PREFIX}slice-size"
LAYERS, POD_GROUP_NAME = f"{PREFIX}slice-required-topology-constraints", f"{PREFIX}group-name"
TRUE, FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")
MOST_LAYERS = 3


@dataclass(frozen=True, slots=True)
class TopologyRequest:
    """The topology request of a pod set. `layers` are (level, pods that stay together), widest first."""

    required: str = ""
    preferred: str = ""
    unconstrained: bool | None = None
    layers: tuple[tuple[str, int], ...] = ()
    group: str = ""

    @property
    def is_explicit(self) -> bool:
        """Whether anything is requested."""
        return bool(self.required or self.preferred or self.layers) or self.unconstrained is not None

    def level(self, levels: Sequence[str]) -> str:
        """Return the level at which pods are placed, or "" if none is named."""
        if self.required or self.preferred:
            return self.required or self.preferred
        if self.layers:
            return levels[0]
        return levels[-1] if self.unconstrained else ""

    def levels_in(self, levels: Sequence[str]) -> bool:
        """Return whether a topology has every requested level."""
        wanted = [self.level(levels), *(label for label, _ in self.layers)]
        return all(level in levels for level in wanted)


def parse_topology_annotations(annotations: Mapping[str, str], kueue: KueueLine) -> TopologyRequest | None:
    """Parse the request of a valid pod template; return None if it requests nothing."""
    required, preferred = annotations.get(REQUIRED, ""), annotations.get(PREFERRED, "")
    free = None
    if not required and not preferred and UNCONSTRAINED in annotations:
        free = annotations[UNCONSTRAINED] in TRUE
    layers: tuple[tuple[str, int], ...] = ()
    if LAYERS in annotations and kueue.has_layers:
        layers = tuple((one["topology"], int(one["size"])) for one in json.loads(annotations[LAYERS]))
    elif SLICE in annotations and SLICE_SIZE in annotations:
        layers = ((annotations[SLICE], int(annotations[SLICE_SIZE])),)
    group = annotations.get(POD_GROUP_NAME, "") if required or preferred else ""
    found = TopologyRequest(required, preferred, free, layers, group)
    return found if found.is_explicit else None


def check_topology_annotations(pods: PodSet, kueue: KueueLine) -> Iterator[str]:
    """Yield the webhook's errors about the annotations of a pod set, in its words."""
    notes = pods.annotations
    at = f"job[{pods.name}].annotations"
    if sum(key in notes for key in (REQUIRED, PREFERRED, UNCONSTRAINED)) > 1:
        quoted = ", ".join(f'"{key}"' for key in (REQUIRED, PREFERRED, UNCONSTRAINED))
        yield f"{at}: Invalid value: must not contain more than one topology annotation: [{quoted}]"
    for key in (REQUIRED, PREFERRED, SLICE):
        if key in notes and not is_qualified(notes[key]):
            words = "name part must consist of alphanumeric characters, '-', '_' or '.'"
            yield f'{at}[{key}]: Invalid value: "{notes[key]}": {words}'
    yield from _check_podset_group_name(at, notes)
    if UNCONSTRAINED in notes and notes[UNCONSTRAINED] not in (*TRUE, *FALSE):
        yield f'{at}[{UNCONSTRAINED}]: Invalid value: "{notes[UNCONSTRAINED]}": must be a boolean value'
    yield from _check_slice_size(at, notes, pods.count)
    if SLICE in notes and SLICE_SIZE not in notes:
        yield f"{at}[{SLICE_SIZE}]: Required value: must be set when '{SLICE}' is specified"
    if SLICE_SIZE in notes and SLICE not in notes:
        yield f"{at}[{SLICE_SIZE}]: Forbidden: may not be set when '{SLICE}' is not specified"
    if LAYERS in notes:
        yield from _check_topology_layers(f"{at}[{LAYERS}]", notes, pods.count, kueue)


def _check_podset_group_name(at: str, notes: Mapping[str, str]) -> Iterator[str]:
    if POD_GROUP_NAME not in notes:
        return
    if notes[POD_GROUP_NAME].isascii() and notes[POD_GROUP_NAME].isdigit():
        yield f'{at}[{POD_GROUP_NAME}]: Invalid value: "{notes[POD_GROUP_NAME]}": must not be a number'
    for key in (SLICE_SIZE, SLICE):
        if key in notes:
            yield f"{at}[{POD_GROUP_NAME}]: Forbidden: may not be set when '{key}' is specified"
    if REQUIRED not in notes and PREFERRED not in notes:
        neither = f"neither '{PREFERRED}' nor '{REQUIRED}' is specified"
        yield f"{at}[{POD_GROUP_NAME}]: Forbidden: may not be set when {neither}"


def _check_slice_size(at: str, notes: Mapping[str, str], count: int) -> Iterator[str]:
    if SLICE_SIZE not in notes:
        return
    text = notes[SLICE_SIZE]
    try:
        size = int(text)
    except ValueError:
        yield f'{at}[{SLICE_SIZE}]: Invalid value: "{text}": must be a numeric value'
        return
    if size < 1:
        yield f'{at}[{SLICE_SIZE}]: Invalid value: "{text}": must be greater than or equal to 1'
    if size > count:
        yield f'{at}[{SLICE_SIZE}]: Invalid value: "{text}": must not be greater than pod set count {count}'


def _check_topology_layers(at: str, notes: Mapping[str, str], count: int, kueue: KueueLine) -> Iterator[str]:
    if not kueue.has_layers:
        gate = "the TASMultiLayerTopology feature gate must be enabled to use this annotation"
        yield f"{at}: Forbidden: {gate}"
        return
    if SLICE in notes or SLICE_SIZE in notes:
        yield f"{at}: Forbidden: may not be set together with '{SLICE}' or '{SLICE_SIZE}'"
    try:
        layers = [(str(one["topology"]), int(one["size"])) for one in json.loads(notes[LAYERS])]
    except (ValueError, TypeError, KeyError, RecursionError):
        yield f"{at}: Invalid value: must be a list of topology and size"
        return
    if not 1 <= len(layers) <= MOST_LAYERS:
        yield f"{at}: Invalid value: must contain between 1 and {MOST_LAYERS} entries"
        return
    for (_, outer), (_, inner) in pairwise(layers):
        if inner < 1 or outer % inner:
            yield f"{at}: Invalid value: {inner}: must evenly divide the size {outer} of the layer above"
    if layers[0][1] > count:
        yield f"{at}: Invalid value: {layers[0][1]}: must not be greater than pod set count {count}"


def check_topology_groups(pods: Sequence[PodSet]) -> Iterator[str]:
    """Yield errors about groups that are not two pod sets, one of them with a single pod.

    JobSet's webhook refuses such groups; the topology search does not support them.
    """
    groups: dict[str, list[PodSet]] = {}
    for one in pods:
        if POD_GROUP_NAME in one.annotations:
            groups.setdefault(one.annotations[POD_GROUP_NAME], []).append(one)
    for name, members in groups.items():
        if len(members) != 2:
            words = f"can only define groups of exactly 2 pod sets, got: {len(members)} pod set(s)"
            yield f"group '{name}': {words}"
        elif 1 not in [one.count for one in members]:
            counts = " and ".join(f"{one.count} replica(s)" for one in members)
            words = "can only define groups where at least one pod set has only 1 replica"
            yield f"group '{name}': {words}, got: {counts}"
