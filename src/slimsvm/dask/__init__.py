"""Kernel machines on a Dask cluster (extra `dask`): rows stay on the workers."""

from .estimators import DaskSlimSVC, DaskSlimSVR

__all__ = ["DaskSlimSVC", "DaskSlimSVR"]
