"""Moulds: the output of a template, made once for all values that the template cannot tell apart.

A template is a program that reads values. It prints most of them; a few decide what it prints: conditions,
comparisons, the length of a loop, the names of pairs. So it is run once on stand-ins (stand_ins.py), which
answer every such question, record it, and print a marker in place of a value. The result is a mould: objects
with slots. With the same answers, the program does the same; so values that give the same answers to these
questions make the same objects except for the printed values, which are read back unchanged. A macro that
reads only its arguments has moulds of its own (docs/decisions/0018-moulds.md).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import field
from functools import partial
from typing import Any

from jinja2 import Environment
from jinja2.runtime import Context, Macro
from markupsafe import Markup

from gangplan.objects import Body
from gangplan.parts import SharedParts
from gangplan.records import dataclass
from gangplan.slots import Mould, UnlikeError, build_mould
from gangplan.source import load_blocks
from gangplan.stand_ins import (
    StandIn,
    Study,
    TemplateNotes,
    TemplateQuestion,
    UnforeseenUseError,
    ValueStep,
    combine_stand_ins,
    merge_stand_ins,
)
from gangplan.template import build_jinja_yaml_environment, format_template_expression, render_yaml

# The most moulds of one template or macro; beyond that, all are dropped and made again when needed.
MOST = 256
# Renderings before moulds are made: they do not pay for a few runs.
PATIENCE = 16
# The name of the template variable that holds the `Moulds` while a template is rendered on stand-ins.
_STUDIED = "gangplan_studied"


def render_template_objects(template: str, values: dict[str, Any]) -> list[Body]:
    """Return the objects that a template writes, by rendering it and reading the text back."""
    return load_blocks(render_yaml(template, values))


@dataclass(slots=True)
class _Fork:
    """A question of a template, the steps that lead to it, and what follows from each answer."""

    question: TemplateQuestion
    steps: tuple[ValueStep, ...]
    ways: dict[Hashable, _Fork | Mould] = field(default_factory=dict)


@dataclass(slots=True)
class _Tree:
    """The moulds of a template or macro, by the answers that lead to them; None leads to the first question.

    `write` returns its text for stand-ins. `is_plain` is true as long as nothing unforeseen happened.
    """

    write: Callable[[dict[str, StandIn]], str]
    parts: SharedParts
    study: Study = field(default_factory=Study)
    root: dict[Hashable, _Fork | Mould] = field(default_factory=dict)
    moulds: int = 0
    is_plain: bool = True

    def known(self, values: dict[str, Any]) -> list[Any]:
        """Return a list for everything that is derived from these values. It contains itself: clear it."""
        known: list[Any] = [None] * len(self.study.steps)
        known[0], known[1] = known, values
        return known

    def found(self, known: list[Any]) -> Mould | None:
        """Return the mould that the answers to the questions lead to, or None."""
        at = self.root.get(None)
        while type(at) is _Fork:
            for number, start, find, _ in at.steps:
                known[number] = find(known[start])
            question = at.question
            at = at.ways.get(question.answer(known[question.number]))
        return at  # type: ignore[return-value]

    def keep(self, notes: TemplateNotes, made: Any) -> Mould:
        """Store the mould of this output where the answers lead. Raises UnforeseenError, UnlikeError."""
        ways, answer, taken = self.root, None, {0, 1}
        for question, found in notes.questions.values():
            fork = ways.get(answer)
            if fork is None:
                steps = _list_steps_to_unknown_values(self.study, (question.number, *question.others), taken)
                fork = ways[answer] = _Fork(question, steps)
            if not isinstance(fork, _Fork) or fork.question[:2] != question[:2]:
                raise UnforeseenUseError("a template asked two things in one place")
            taken.update(step.number for step in fork.steps)
            ways, answer = fork.ways, found
        mould = build_mould(
            made, lambda numbers: _list_steps_to_unknown_values(self.study, numbers, taken), self.parts
        )
        ways[answer] = mould
        self.moulds += 1
        return mould


def _list_steps_to_unknown_values(
    study: Study, numbers: Iterable[int], taken: set[int]
) -> tuple[ValueStep, ...]:
    """Return the steps to values that are not known yet, each after those that it starts from."""
    found: dict[int, ValueStep] = {}

    def go(number: int) -> None:
        if number not in taken and number not in found:
            step = study.steps[number]
            for before in (step.start, *step.others):
                go(before)
            found[number] = step

    for number in numbers:
        go(number)
    return tuple(found.values())


@dataclass(slots=True)
class Moulds:
    """The moulds that one worker has made: of templates by name, and of their macros.

    The first `patience` renderings of a template are made without them.
    """

    trees: dict[Hashable, _Tree] = field(default_factory=dict)
    patience: int = field(default_factory=lambda: PATIENCE)
    parts: SharedParts = field(default_factory=SharedParts)
    _calls: dict[str, int] = field(default_factory=dict)
    _inline: set[str] = field(default_factory=set)  # macros that read more than their arguments
    _keys: dict[Hashable, int] = field(default_factory=dict)  # of macros: hashing their code is slow
    _opened: list[TemplateNotes] = field(default_factory=list)
    _environment: Environment | None = None

    def objects_of(self, template: str, values: dict[str, Any]) -> list[Body]:
        """Return the objects that a template writes for these values, like `render_template_objects` but
        faster."""
        tree = self._tree(template, partial(self._text_of, template))
        calls = self._calls[template] = self._calls.get(template, 0) + 1
        if not tree.is_plain or calls <= self.patience:
            return render_template_objects(template, values)
        known = tree.known(values)
        try:
            mould = tree.found(known)
            if mould is not None:
                bodies: list[Body] = mould.filled(known)
                return bodies
        except Exception:  # noqa: BLE001  whatever it is, the template itself says it better
            return render_template_objects(template, values)
        finally:
            known.clear()
        bodies = render_template_objects(template, values)
        try:
            self._learn(tree, values, load_blocks)
        except Exception:  # noqa: BLE001  a template that stand-ins do not understand is rendered each time
            tree.is_plain = False
        return bodies

    def _tree(self, name: Hashable, write: Callable[[dict[str, StandIn]], str]) -> _Tree:
        tree = self.trees.get(name)
        if tree is None or tree.moulds > MOST:
            tree = self.trees[name] = _Tree(write, self.parts)
        return tree

    def _learn(self, tree: _Tree, values: dict[str, Any], read: Callable[[str], Any]) -> Mould:
        """Make a mould for values with new answers. Raises what a stand-in raises."""
        notes = TemplateNotes(tree.study, self._opened)
        self._opened.append(notes)
        try:
            text = tree.write({name: notes.given(name, value) for name, value in values.items()})
            return tree.keep(notes, read(text))
        finally:
            self._opened.pop()

    # --- templates and macros on stand-ins

    def _text_of(self, template: str, given: dict[str, StandIn]) -> str:
        if self._environment is None:
            self._environment = _build_study_environment()
        return self._environment.get_template(template).render({**given, _STUDIED: self})

    def made_by(self, macro: Macro, given: tuple[Any, ...]) -> Markup | None:
        """Return a marker for the output of a macro called with stand-ins, or None if it must run inline."""
        if macro.name in self._inline or not any(isinstance(one, StandIn | list) for one in given):
            return None
        notes = self._opened[-1]
        given = tuple(merge_stand_ins(notes, one) for one in given)
        constants = {str(at): one for at, one in enumerate(given) if not isinstance(one, StandIn)}
        count = range(len(given))

        def write(stood: dict[str, StandIn]) -> str:
            return str(
                macro(*[constants[name] if name in constants else stood[name] for name in map(str, count)])
            )

        code = macro._func.__code__  # two templates may have macros of the same name
        key = macro.name, self._keys.setdefault((code, tuple(constants.items())), len(self._keys))
        names = tuple(name for name in map(str, count) if name not in constants)
        make = partial(self._piece, key, write, names)
        try:
            stood = combine_stand_ins(
                notes, ("macro", *key), make, *(one for one in given if isinstance(one, StandIn))
            )
        except UnforeseenUseError:
            self._inline.add(macro.name)
            self.trees = {}  # earlier moulds asked too few questions
            return None
        marker = stood.marker("m")
        return Markup(f"- {marker}\n" if isinstance(stood._value, list) else f"{marker}: 0\n")

    def _piece(
        self, key: Hashable, write: Callable[[dict[str, StandIn]], str], names: tuple[str, ...], *given: Any
    ) -> Any:
        """Return the mapping or list that a macro writes for these values."""
        tree = self._tree(key, write)
        values = dict(zip(names, given, strict=True))
        known = tree.known(values)
        try:
            mould = tree.found(known)
            if mould is None:
                known.clear()
                mould = self._learn(tree, values, _parse_output_of_mould_macro)
                known.extend(tree.known(values))
                known[0] = known
                mould = tree.found(known) or mould
            return mould.filled(known)
        finally:
            known.clear()


def _parse_output_of_mould_macro(text: str) -> Any:
    """Parse the mapping or list that a macro wrote. Raises UnlikeError if it wrote nothing."""
    if not text.strip():
        raise UnlikeError("a macro wrote nothing")
    (body,) = load_blocks(f"piece:\n{text}" if text.startswith("- ") else text)
    return body["piece"] if text.startswith("- ") else body


class _StudyContext(Context):
    """A context that passes calls of macros with stand-ins to the moulds."""

    def call(__self, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805  as in Context
        if isinstance(__obj, Macro):
            named = kwargs.keys() - {"_loop_vars", "_block_vars"}
            marker = None if named else __self.resolve(_STUDIED).made_by(__obj, args)
            if marker is not None:
                return marker
        return super().call(__obj, *args, **kwargs)


def _format_value_or_stand_in(value: Any) -> str:
    return value.marker("v") if isinstance(value, StandIn) else format_template_expression(value)


def _is_none(value: Any) -> bool:
    return value.is_none() if isinstance(value, StandIn) else value is None


def _build_study_environment() -> Environment:
    environment = build_stand_in_environment()
    environment.context_class = _StudyContext
    return environment


def build_stand_in_environment() -> Environment:
    """Return the environment for templates that are run on stand-ins, which print markers."""
    environment = build_jinja_yaml_environment(_format_value_or_stand_in)
    environment.tests["none"] = _is_none
    return environment
