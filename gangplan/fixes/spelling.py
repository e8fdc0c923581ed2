"""Fixes for amounts of a valid file that are not in the form that Kubernetes keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from gangplan.findings import FieldPath, Fix
from gangplan.model.quantity import Quantity
from gangplan.source import Document
from gangplan.spec.base import Cpu, Memory, ReadBy

# Marks of a field for an amount of cores or bytes; a weight is a Quantity too, but written as a number.
_AMOUNTS = frozenset(mark for kind in (Cpu, Memory) for mark in get_args(kind)[1:])


def find_spelling_fixes(document: Document, value: BaseModel) -> Iterator[Fix]:
    """Yield a fix for each amount that Kubernetes would write in another way.

    1000m is 1, 0.5Gi is 512Mi, 1024Mi is 1Gi. The canonical form is that of k8s.io/apimachinery
    (model.quantity); the amount is the same.
    """
    for path, amount in _find_amounts_to_fix_in_model(value, ()):
        written, canonical = document.text(path), amount.canonical()
        text = document.like(path, canonical) if written not in (None, canonical) else None
        why = f"{written} is {canonical} in the form that Kubernetes keeps"
        fix = document.fix(path, text, why) if text else None
        if fix is not None:
            yield fix


def _find_amounts_to_fix_in_model(value: BaseModel, path: FieldPath) -> Iterator[tuple[FieldPath, Quantity]]:
    for name in sorted(value.model_fields_set):
        field = type(value).model_fields[name]
        inner = getattr(value, name)
        is_amount = any(_is_annotation_of_amount_to_fix(part) for part in (*field.metadata, field.annotation))
        yield from _find_amounts_to_fix_in_value(inner, (*path, field.alias or name), is_amount)


def _find_amounts_to_fix_in_value(
    value: Any, path: FieldPath, is_amount: bool
) -> Iterator[tuple[FieldPath, Quantity]]:
    if isinstance(value, BaseModel):
        yield from _find_amounts_to_fix_in_model(value, path)
    elif isinstance(value, Quantity) and is_amount:
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _find_amounts_to_fix_in_value(inner, (*path, key), is_amount)
    elif isinstance(value, tuple):
        for index, inner in enumerate(value):
            yield from _find_amounts_to_fix_in_value(inner, (*path, index), is_amount)


def _is_annotation_of_amount_to_fix(annotation: Any) -> bool:
    """Return whether an annotation, or a part of it, is that of cores or bytes."""
    if isinstance(annotation, ReadBy):
        return annotation in _AMOUNTS
    parts = (*getattr(annotation, "__metadata__", ()), *get_args(annotation))
    return any(_is_annotation_of_amount_to_fix(part) for part in parts)
