"""`gangplan explain FIELD`: every field by its path and by the names that people use for it."""

from __future__ import annotations

import pytest

from gangplan.errors import Exit
from gangplan.policies import BUILTIN_PACKS
from gangplan.reference.fields import find_fields, find_rules_about, list_all_format_fields
from gangplan.reference.topics import list_file_kinds
from gangplan.workspace import suggest_nearest
from tests.workspaces import gangplan

FIELDS = list_all_format_fields()


@pytest.mark.parametrize("kind", ["spec", "team", "cluster", "catalog"])
def test_every_field_has_a_page(kind: str) -> None:
    for field in (one for one in FIELDS if one.kind == kind):
        first, *_ = find_fields(field.name)
        assert first == field
        assert field.facts["meaning"].endswith(".")
        assert field.facts["type"]


def test_there_are_many_fields_with_unique_names() -> None:
    assert len(FIELDS) > 120
    assert len({one.name for one in FIELDS}) == len(FIELDS)


@pytest.mark.parametrize(
    ("name", "first", "says"),
    [
        ("workers", "spec.workers", "Pods that run ranks"),
        ("job.workers", "spec.workers", "default:"),
        ("network.posture", "spec.network.posture", "type: default, restricted, isolated"),
        ("spec.network", "spec.network", "fields: "),
        ("cluster.nodePools.gpu", "cluster.nodePools.gpu", "overlays/<cluster>/cluster.yaml"),
        ("nodepools.gpu.model", "cluster.nodePools.gpu.model", "type: text"),
        ("team.claims", "team.claims", "specs/<team>/team.yaml"),
        ("NodePool.count", "cluster.nodePools.count", "default: required"),
        ("catalog.images.mpi", "catalog.images.mpi", "images/catalog.yaml"),
    ],
)
def test_a_field_is_explained(name: str, first: str, says: str) -> None:
    outcome = gangplan("explain", name)
    assert outcome.code == Exit.CLEAN
    assert outcome.out.startswith(f"{first} (")
    assert says in outcome.out or says == "default:"


def test_rules_about_a_field_are_listed() -> None:
    def about(name: str) -> set[str]:
        return set(find_rules_about(find_fields(name)[0]))

    assert {"workers-over-limit", "workers-one"} <= about("spec.workers")
    assert "priority-unknown" in about("spec.priority")
    assert "image-unknown" in about("spec.image")
    assert "spec-value" not in about("spec.workers")
    assert "workers-one" not in about("cluster.region")


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("network.postur", "network.posture"),
        ("wrokers", "workers"),
        ("cluster.nodePols.gpu", "cluster.nodePools.gpu"),
        ("TrainingJbo", "TrainingJob"),
        ("hippa", "hipaa"),
    ],
)
def test_a_typo_gets_a_suggestion(typo: str, meant: str) -> None:
    outcome = gangplan("explain", typo)
    assert outcome.code == Exit.INPUT
    assert f"there is no rule, cause, field, kind or pack '{typo}'" in outcome.err
    assert f"Did you mean '{meant}'?" in outcome.err


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "TrainingJob",
            ("TrainingJob (specs/<team>/<job>.yaml)", "  workers ", "gangplan explain spec.FIELD"),
        ),
        ("Team", ("Team (specs/<team>/team.yaml)", "  namespace ", "One team: one namespace")),
        ("waiver", ("Waiver (policies/waivers/<name>.yaml)", "  reason ")),
        ("ImageCatalog", ("images/catalog.yaml",)),
        ("Cluster", ("overlays/<cluster>/cluster.yaml", "  nodePools ")),
        (
            "hipaa",
            (
                "hipaa (policy pack)",
                "bears gangplan.dev/hipaa",
                "uses: waiver-granted",
                "  claims-encrypted ",
            ),
        ),
        ("baseline", ("every namespace of a team", "  host-path ")),
    ],
)
def test_a_kind_or_a_pack_is_explained(name: str, says: tuple[str, ...]) -> None:
    outcome = gangplan("explain", name)
    assert outcome.code == Exit.CLEAN, outcome.err
    for text in says:
        assert text in outcome.out
    assert all(len(line) <= 100 for line in outcome.out.splitlines())


def test_every_kind_and_pack_is_known() -> None:
    assert set(list_file_kinds().values()) == {field.kind for field in FIELDS}
    assert {"baseline", "hipaa", "sox"} < set(BUILTIN_PACKS)
    for name in [*list_file_kinds(), *BUILTIN_PACKS]:
        assert gangplan("explain", name).code == Exit.CLEAN


def test_a_name_that_is_like_no_other_gets_general_help() -> None:
    outcome = gangplan("explain", "gangplan.dev")
    assert outcome.code == Exit.INPUT
    assert "gangplan explain lists all rules" in outcome.err
    assert "apiVersion, apiVersion" not in outcome.err
    assert suggest_nearest("x", ["b", "a", "b"]) == "Known: a, b."
