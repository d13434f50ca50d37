"""Settings of trainers and reducers as parameters of the estimator: `reducer__steps`, `trainer__working_set`."""

from __future__ import annotations

import dataclasses
from typing import Any

from sklearn.base import BaseEstimator

from ..reducers import REDUCERS
from ..trainers import TRAINERS

#: parameters that hold settings, with the table from names to classes
TABLES: dict[str, dict[str, Any]] = {"trainer": TRAINERS, "reducer": REDUCERS}


class NestedSettings(BaseEstimator):
    """get_params and set_params that reach into trainers and reducers, so that grids can search over their settings.

    Settings are frozen, so set_params replaces them. A name becomes an instance with the changes.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this estimator.

        Parameters
        ----------
        deep : bool, default=True
            Whether the settings of a trainer and a reducer that are instances are included, as `trainer__C` and so on.

        Returns
        -------
        dict
            The parameters by name.
        """
        params = super().get_params(deep=deep)
        for name in TABLES if deep else ():
            params |= _settings_in(params.get(name), f"{name}__")
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters of this estimator, and of its trainer and reducer as `reducer__steps` and so on.

        Parameters
        ----------
        **params : dict
            The parameters by name.

        Returns
        -------
        estimator
            The estimator itself.
        """
        nested: dict[str, dict[str, Any]] = {name: {} for name in TABLES}
        for key in list(params):
            name, _, setting = key.partition("__")
            if name in TABLES and setting:
                nested[name][setting] = params.pop(key)
        super().set_params(**params)
        for name, changes in nested.items():
            if changes:
                setattr(self, name, _changed(name, _instance(name, getattr(self, name)), changes))
        return self


def _is_settings(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _settings_in(value: Any, prefix: str) -> dict[str, Any]:
    """Return the settings of an instance by their full names; none for a name."""
    if not _is_settings(value):
        return {}
    found: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        found |= {prefix + field.name: inner} | _settings_in(inner, f"{prefix}{field.name}__")
    return found


def _instance(name: str, value: Any) -> Any:
    """Return the settings, made from a name if necessary."""
    if isinstance(value, str) and value in TABLES[name]:
        return TABLES[name][value]()
    if not _is_settings(value):
        raise ValueError(
            f"{name}={value!r} has no settings to set; give one of {sorted(TABLES[name])}, or an instance of such a class"
        )
    return value


def _changed(name: str, settings: Any, changes: dict[str, Any]) -> Any:
    """Return the settings with changes, also to nested settings."""
    fields, direct, inner = {field.name for field in dataclasses.fields(settings)}, {}, dict[str, dict[str, Any]]()
    for key, value in changes.items():
        field, _, rest = key.partition("__")
        if field not in fields or (rest and not _is_settings(getattr(settings, field))):
            raise ValueError(
                f"Invalid parameter {name}__{key}: {type(settings).__name__} has no such setting. Valid parameters are: "
                f"{sorted(_settings_in(settings, f'{name}__'))}"
            )
        if rest:
            inner.setdefault(field, {})[rest] = value
        else:
            direct[field] = value
    settings = dataclasses.replace(settings, **direct)
    for field, some in inner.items():
        part = _changed(f"{name}__{field}", getattr(settings, field), some)
        settings = dataclasses.replace(settings, **{field: part})
    return settings
