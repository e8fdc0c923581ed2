"""Records look like the standard library's dataclasses to any program, and cost nothing until used."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
from dataclasses import field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gangplan
from gangplan import records
from gangplan.records import dataclass
from tests.workspaces import REPOSITORY

# The module that makes records, and what runs before anything else is imported.
OWN = ("gangplan/records.py",)
# Runs in its own process: it sees every class made while the program is imported.
COMPARE = "from tests.test_records import compare_all; compare_all()"


def compare_all() -> None:
    """Make each record of the program with the standard library, too, and compare the classes."""
    twins: dict[type, type] = {}
    make = records._build_dataclass_type

    def both(cls: type, frozen: bool, slots: bool, eq: bool, order: bool) -> type:
        gone = ("__dict__", "__weakref__")
        bases = tuple(twins.get(base, base) for base in cls.__bases__)
        space = {name: value for name, value in cls.__dict__.items() if name not in gone}
        for name, value in space.items():
            if isinstance(value, dataclasses.Field):
                space[name] = copied(value)
        twin = type(cls)(cls.__name__, bases, space)
        twin = dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq, order=order)(twin)
        record = make(cls, frozen, slots, eq, order)
        twins[record] = twin
        hidden = {"__dataclass_params__", "__record_fields__"}
        assert set(record.__dict__) - hidden == set(twin.__dict__) - hidden, record
        return record

    records._build_dataclass_type = both
    for module in pkgutil.walk_packages(gangplan.__path__, "gangplan."):
        if not module.name.endswith("__main__") and module.name != "gangplan.engines.mpi":
            importlib.import_module(module.name)
    assert len(twins) > 300, len(twins)
    for record, twin in twins.items():
        ours, theirs = told(record), told(twin)
        differing = {name: (ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]}
        assert not differing, (record, differing)


def copied(one: Any) -> Any:
    """Copy a field(): the decorator writes into the one that it gets."""
    given = {
        name: getattr(one, name) for name in ("default", "default_factory", "init", "repr", "hash", "compare")
    }
    return dataclasses.field(
        **{name: value for name, value in given.items() if value is not dataclasses.MISSING}
    )


def told(cls: type) -> dict[str, Any]:
    """Return everything that a class shows about itself."""
    fields = [
        (one.name, one.type, one.default, one.default_factory, one.init, one.repr, one.compare, one.hash)
        for one in dataclasses.fields(cls)  # type: ignore[arg-type]
    ]
    parameters = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
    return {
        "fields": fields,
        "arguments": [(one.name, one.kind, one.default is inspect.Parameter.empty) for one in parameters],
        "annotations": cls.__init__.__annotations__,  # type: ignore[misc]
        "slots": set(cls.__dict__.get("__slots__", ())),
        "match": getattr(cls, "__match_args__", None),
        "hash": cls.__hash__ is None,
        "is hashed by its own": "__hash__" in cls.__dict__,
        "bases": [base.__name__ for base in cls.__mro__],
    }


def test_every_record_equals_the_dataclass_of_the_standard_library() -> None:
    done = subprocess.run([sys.executable, "-c", COMPARE], cwd=REPOSITORY, capture_output=True, text=True)
    assert not done.returncode, done.stderr[-3000:]


def test_no_module_uses_the_dataclass_of_the_standard_library() -> None:
    """Each would cost a third of a millisecond at every start."""
    wrong = [
        path.relative_to(REPOSITORY).as_posix()
        for top in ("gangplan", "generators", "validate")
        for path in (REPOSITORY / top).rglob("*.py")
        if path.relative_to(REPOSITORY).as_posix() not in OWN
        and "from dataclasses import dataclass" in path.read_text(encoding="utf-8")
    ]
    assert wrong == []


def pair(name: str, annotations: dict[str, str], space: dict[str, Any], **flags: Any) -> list[type]:
    """Make a class as a record and as a dataclass, under names that `pickle` finds."""
    made = []
    for number, decorate in enumerate((dataclass, dataclasses.dataclass)):
        own = {
            key: copied(value) if isinstance(value, dataclasses.Field) else value
            for key, value in space.items()
        }
        names = {"__annotations__": annotations, "__module__": __name__, "__doc__": "A shape.", **own}
        cls = decorate(**flags)(type(f"{name}{number}", (), names))
        cls.__qualname__ = f"{name}{number}"
        globals()[cls.__name__] = cls
        made.append(cls)
    return made


_POINT = {"x": "int", "y": "str"}
SHAPES = [
    pair("Frozen", _POINT, {"y": "a"}, frozen=True, slots=True),
    pair("Loose", _POINT, {}, frozen=True),
    pair("Ordered", _POINT, {}, frozen=True, slots=True, order=True),
    pair("Mutable", _POINT, {}, slots=True),
    pair("Plain", _POINT, {}),
    pair("Identity", _POINT, {}, frozen=True, slots=True, eq=False),
    pair("Hidden", _POINT, {"y": field(compare=False, repr=False)}, frozen=True, slots=True),
    pair("Made", {**_POINT, "z": "list[int]"}, {"z": field(default_factory=list)}, slots=True),
    pair("Kept", {**_POINT, "z": "int"}, {"z": field(default=3, init=False)}, slots=True),
]
ids = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape[0].__name__)
values = st.tuples(st.integers(0, 2), st.sampled_from(["a", "b"]))


def answer(ask: Any) -> Any:
    """Return the result of a question, or the type of its exception."""
    try:
        return ask()
    except Exception as bad:  # noqa: BLE001  whatever it is, both must refuse alike
        return type(bad)


@ids
@given(left=values, right=values)
def test_objects_behave_alike(shape: list[type], left: tuple[int, str], right: tuple[int, str]) -> None:
    ours, theirs = ([cls(*left), cls(*right)] for cls in shape)
    for ask in (
        lambda one, two: one == two,
        lambda one, two: one != two,
        lambda one, two: one < two,
        lambda one, two: one >= two,
        lambda one, two: (hash(one) == hash(two)) if type(one).__eq__ is not object.__eq__ else None,
        lambda one, two: dataclasses.asdict(one),
        lambda one, two: dataclasses.asdict(dataclasses.replace(one, x=7)),
        lambda one, two: dataclasses.asdict(copy.deepcopy(one)),
        lambda one, two: dataclasses.asdict(pickle.loads(pickle.dumps(one))),
        lambda one, two: setattr(one, "x", 9),
        lambda one, two: delattr(one, "y"),
        lambda one, two: (one.x, getattr(one, "y", None)),
    ):
        assert answer(lambda ask=ask: ask(*ours)) == answer(lambda ask=ask: ask(*theirs))
    ours, theirs = ([cls(*left), cls(*right)] for cls in shape)
    assert repr(ours).replace("0(", "(") == repr(theirs).replace("1(", "(")


@ids
def test_a_missing_or_unknown_argument_is_refused_alike(shape: list[type]) -> None:
    for arguments in ((), (1, "a", [1], 4), (1,)):
        ours, theirs = (
            answer(lambda cls=cls, given=arguments: dataclasses.asdict(cls(*given))) for cls in shape
        )
        assert ours == theirs


@ids
def test_an_object_may_be_unpickled_before_any_is_made(shape: list[type]) -> None:
    """A worker's answer is unpickled before this process has made any such object."""
    pickled = pickle.dumps(shape[0](1, "b"))
    script = (
        f"import pickle; import tests.test_records; one = pickle.loads({pickled!r}); print(one, one == one)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stdout == f"{shape[0](1, 'b')} True\n", done.stderr


def test_equal_unpickled_objects_are_equal() -> None:
    frozen = SHAPES[0][0]
    one, two = (pickle.loads(pickle.dumps(frozen(1, "b"))) for _ in range(2))
    assert one == two
    assert len({one, two}) == 1


def test_methods_are_generated_at_first_use_only() -> None:
    """The constructor and the fields are generated when they are first accessed."""
    ours = pair("Fresh", _POINT, {}, frozen=True, slots=True)[0]
    assert type(ours.__dict__["__init__"]) is records._AtFirstUse
    assert type(ours.__dict__["__dataclass_fields__"]) is records._AtFirstUse
    ours(1, "a")
    assert inspect.isfunction(ours.__dict__["__init__"])
    assert type(ours.__dict__["__dataclass_fields__"]) is records._AtFirstUse
    assert [one.name for one in dataclasses.fields(ours)] == ["x", "y"]
    assert type(ours.__dict__["__dataclass_fields__"]) is dict


def test_a_subclass_can_call_the_constructor_of_its_base() -> None:
    @dataclass(frozen=True, slots=True)
    class Base:
        x: int

    class Child(Base):
        """Not a record itself."""

        def __init__(self) -> None:
            super().__init__(3)

    @dataclass(frozen=True, slots=True)
    class Record(Base):
        y: int = 4

    assert Child().x == 3
    assert Record(1) == Record(1, 4) != Record(1, 5)
    assert repr(Record(1)).endswith("Record(x=1, y=4)")


def test_a_pseudo_field_is_refused() -> None:
    with pytest.raises(TypeError, match="InitVar"):
        dataclass(type("Odd", (), {"__annotations__": {"x": "InitVar[int]"}}))


def test_classes_of_one_shape_share_compiled_code() -> None:
    """Compiling takes a tenth of a millisecond, and a command makes objects of hundreds of classes."""
    point, pair = (
        dataclass(frozen=True, slots=True)(type("Two", (), {"__annotations__": dict.fromkeys(names, "int")}))
        for names in (("x", "y"), ("left", "right"))
    )
    assert point(x=1, y=2).y == 2
    compiled = records._compile_dataclass_init_code.cache_info().misses
    assert pair(left=1, right=2).right == 2
    assert records._compile_dataclass_init_code.cache_info().misses == compiled


def test_a_field_without_default_after_one_with_is_refused() -> None:
    space = {"__annotations__": {"x": "int", "y": "int"}, "x": 1}
    with pytest.raises(TypeError, match="non-default argument 'y' follows default argument"):
        dataclass(type("Wrong", (), space))(1, 2)


INTERRUPTED = """
from __future__ import annotations
import sys
from gangplan.records import dataclass

@dataclass(frozen=True, slots=True)
class Pair:
    one: int
    other: int = 0

def interrupt(frame, event, argument):
    if frame.f_code.co_name == "<module>" and frame.f_code.co_filename != __file__:
        raise KeyboardInterrupt
    return interrupt

sys.settrace(interrupt)
try:
    Pair(1)
except KeyboardInterrupt:
    sys.settrace(None)
    print("caught")
"""


def test_a_caught_interrupt_while_a_record_is_made_ends_nothing_later(tmp_path: Path) -> None:
    """An interrupted command exits with 130; the program must not die of the signal later."""
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "caught\n", "")
