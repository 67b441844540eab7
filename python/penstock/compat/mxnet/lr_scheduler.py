"""mx.lr_scheduler: the schedules of penstock.kv.lr_scheduler."""

from __future__ import annotations

from penstock.kv.lr_scheduler import CosineScheduler, FactorScheduler, LRScheduler, MultiFactorScheduler, PolyScheduler

__all__ = ["CosineScheduler", "FactorScheduler", "LRScheduler", "MultiFactorScheduler", "PolyScheduler"]
