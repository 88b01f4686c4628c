"""Attributes that are computed once, without a lock."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801  # the name of the one it replaces
    """A property that is computed at its first use and stored in the instance.

    That of functools holds a lock in Python 3.11, one for all instances of a class. A process that
    is forked while another thread computes the property inherits a lock that nobody releases. Here
    two threads may both compute the value; the first one stored is kept.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "cached_property[T]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.name, self.compute(instance))


def state_of_fields(instance: Any) -> dict[str, Any]:
    """Return what is pickled of a dataclass: its fields, without properties computed from them.

    As ``__getstate__`` of what a fitted model holds, it makes using the model leave its pickle
    as it was. A loaded model computes the properties again when they are needed.
    """
    return {field.name: getattr(instance, field.name) for field in fields(instance)}
