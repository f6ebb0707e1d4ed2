"""What very many models have in common, kept once: a campaign may have a hundred thousand points."""

from __future__ import annotations

from typing import TypeVar

from harness.model.axes import Frozen

Model = TypeVar("Model", bound=Frozen)


class Sharing:
    """Equal parts of frozen models become one object."""

    def __init__(self) -> None:
        self._names: dict[frozenset[str], set[str]] = {}
        self._models: dict[Frozen, Frozen] = {}

    def __call__(self, model: Model) -> Model:
        """The model itself; the names of the fields that it was given are shared with other models.

        Pydantic keeps such a set for each model, of two kilobytes where there are many fields.
        """
        names = frozenset(model.model_fields_set)
        object.__setattr__(model, "__pydantic_fields_set__", self._names.setdefault(names, set(names)))
        return model

    def equal(self, model: Model) -> Model:
        """The first model that was equal to this one."""
        return self._models.setdefault(model, self(model))  # type: ignore[return-value]
