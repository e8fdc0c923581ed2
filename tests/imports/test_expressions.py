"""Variables of the source's controller that scripts read in arithmetic, where bash needs no dollar sign."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.expressions import find_variables_read_by_script
from tests.imports.sources import imported

TORCH = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: lens}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: pytorch
            image: registry.example.com/vision/lens:1
            command: [bash, -c]
            args:
            - |
              torchrun --nproc_per_node=8 train.py --world WHAT
            resources: {limits: {nvidia.com/gpu: 8, cpu: 64, memory: 100Gi}}
"""

VOLCANO = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: lava}
spec:
  plugins: {env: [], svc: []}
  tasks:
  - name: w
    replicas: 4
    template:
      spec:
        containers:
        - name: w
          image: registry.example.com/fire/lava:2
          command: [sh, -c, "./erupt --part $((VK_TASK_INDEX+1))"]
          resources: {limits: {cpu: 1, memory: 4Gi}}
"""


@pytest.mark.parametrize(
    "what", ["$((WORLD_SIZE*8))", "$(($WORLD_SIZE*8))", "$(( (WORLD_SIZE + 1) * 8 ))", "$[WORLD_SIZE*8]"]
)
def test_a_name_in_arithmetic_is_set_by_the_script_of_a_run(what: str, tmp_path: Path) -> None:
    """Pods of a run have no WORLD_SIZE in front of torchrun, and bash takes an unset name for 0."""
    (one,) = imported(tmp_path, "pytorchjob", TORCH.replace("WHAT", what)).imported
    assert one.draft.values["command"][2] == (
        f'export WORLD_SIZE="$PET_NNODES"\ntorchrun train.py --world {what}\n'
    )


def test_an_index_in_arithmetic_is_that_of_the_pod(tmp_path: Path) -> None:
    (one,) = imported(tmp_path, "volcano", VOLCANO).imported
    assert 'export VK_TASK_INDEX="$JOB_COMPLETION_INDEX"' in one.draft.values["command"][2]


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("x $((A*8)) $(( (B+1) % (C) )) D", {"A", "B", "C"}),
        ("(( A == 0 )) && x B", {"A"}),
        ("if ((A)); then x; fi; echo B", {"A"}),
        ("let N=A+1; x B", {"N", "A"}),
        ("declare -i N=A*2\nx B", {"N", "A"}),
        ("declare N=A", set()),
        ("x $[A+1] B", {"A"}),
        ("x ${LIST[A]} ${S:B:2} ${T:-C}", {"LIST", "A", "S", "B", "T"}),
        ("[[ A -eq 0 && $B -lt C ]]", {"A", "B", "C"}),
        ('[[ "A" == B ]]; [ "$C" -eq 0 ]', {"C"}),
        ("x ${#A} ${!B}", {"A", "B"}),
        ("x $((0x1F + 16#FF))", set()),
        ("x $((A", {"A"}),
    ],
)
def test_names_are_found_where_bash_evaluates_them(script: str, names: set[str]) -> None:
    assert find_variables_read_by_script(script) == names


def test_names_in_arithmetic_that_nothing_sets_are_asked_about(tmp_path: Path) -> None:
    known = "i=1; echo $((i + 16#ff)) $((n = 0x1f)) $((n++)) ${PART:-0} $((PART)) $((RANDOM))"
    script = f"./erupt --part $((VK_TASK_INDEX+OFFSET)) $((2 * $GRID)); let z=1; echo GRID=4 $((z)); {known}"
    text = VOLCANO.replace("./erupt --part $((VK_TASK_INDEX+1))", script)
    (one,) = imported(tmp_path, "volcano", text).imported
    asked = [(found.message, found.help) for found in one.findings if "nothing sets" in found.message]
    assert asked == [
        ("the command reads $OFFSET, which nothing sets", "Set it under env:, unless the image does."),
        (
            "the command reads $GRID, which nothing sets",
            "Give its value: --set GRID=VALUE; or set it under env:, unless the image does.",
        ),
    ]
