"""Prefetch: asks for the rows of the next batch while the model computes with this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.torch.embedding import Embedding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    import torch


class Prefetch:
    """Goes through the batches of a DataLoader, one ahead, and has each Embedding ask for the next batch's rows.

    In an asynchronous store the rows are asked for while the model computes with the batch before, so they may lack the
    gradients of that batch. In a synchronous store a lookup follows the worker's own push: the rows are asked for in
    `step`, and travel while the script goes on to its next forward pass; results are those without Prefetch.

    Args:
        loader (iterable): batches, such as a torch.utils.data.DataLoader.
        ids (dict[penstock.torch.Embedding, callable]): for each module, a function that takes a batch and returns the
            tensor of ids that the module's forward pass will get.

    Raises:
        TypeError: a key of `ids` is no Embedding, or a value cannot be called.

    Example:
        import torch
        kv = penstock.kv.create('local')
        embedding = penstock.torch.Embedding(penstock.kv.Table('ads', 4, 'sgd'))
        batches = [torch.tensor([1, 2]), torch.tensor([2, 3])]
        for batch in penstock.torch.Prefetch(batches, {embedding: lambda batch: batch}):
            embedding(batch).sum().backward()
            embedding.step()
    """

    def __init__(self, loader: Iterable[Any], ids: Mapping[Embedding, Callable[[Any], torch.Tensor]]) -> None:
        for module, function in ids.items():
            if not isinstance(module, Embedding) or not callable(function):
                raise TypeError(
                    "penstock.torch: Prefetch takes {embedding: function of a batch}, not "
                    f"{{{type(module).__name__}: {type(function).__name__}}}"
                )
        self._loader = loader
        self._ids = dict(ids)

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self._loader)
        try:
            batch = next(batches)
        except StopIteration:
            return
        self._ask(batch, after_step=False)
        for upcoming in batches:
            self._ask(upcoming, after_step=True)
            yield batch
            batch = upcoming
        yield batch

    def _ask(self, batch: Any, after_step: bool) -> None:
        for module, function in self._ids.items():
            module.prefetch(function(batch), after_step)
