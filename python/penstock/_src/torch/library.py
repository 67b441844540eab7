"""PyTorch, or what stands for it where it is not installed: then its first use raises ImportError."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.base.errors import error_with_id

if TYPE_CHECKING:
    import torch as torch
else:
    try:
        import torch
    except ImportError:

        class _Missing:
            def __getattr__(self, name: str) -> object:
                raise error_with_id(
                    ImportError, "E-torch-missing", "penstock.torch needs PyTorch 2.1 or later, which is not installed"
                )

        torch = _Missing()
