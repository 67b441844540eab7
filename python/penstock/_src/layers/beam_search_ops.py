"""Layers that assemble the results of a beam search by following each branch from its end to its beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock._src.ir.variable import Variable
from penstock._src.layers.decorators import Attrs, layer, op_layer, op_layer_with_results
from penstock._src.layers.helper import LayerHelper

if TYPE_CHECKING:
    from typing import Any


@layer("beam_search_decode", fluid_accepts={"ids": "int64", "scores": "float32 float64"})
def beam_search_decode(
    ids: Variable, scores: Variable, beam_size: int, end_id: int, name: str | None = None
) -> tuple[Any, ...]:
    """Assembles the sentences from the tokens that the steps of `beam_search` selected.

    Args:
        ids (Variable): array of the selected tokens of each step, with two levels of sequences.
        scores (Variable): array of their scores, with the same sequences.
        beam_size (int): the maximum number of sentences per source.
        end_id (int): the token that ends a sentence; each sentence keeps one at its end.

    Returns:
        tuple: (tokens, scores), two Variables of the types of `ids` and `scores` with two levels of sequences. The
        outer level groups the sentences of each source, the best first; the inner level groups the tokens of each
        sentence.

    Raises:
        penstock.ProgramError: `beam_size` is below 1, or an array has an unsupported element type.

    Example:
        step = fluid.layers.fill_constant([1], 'int64', 0)
        ids = fluid.layers.array_write(fluid.data('ids', [None, 1], 'int64', lod_level=2), step)
        scores = fluid.layers.array_write(fluid.data('scores', [None, 1], lod_level=2), step)
        sentences, of_sentences = fluid.layers.beam_search_decode(ids, scores, beam_size=4, end_id=1)
    """
    helper = LayerHelper("beam_search_decode", name=name).takes(ids=ids, scores=scores)
    outputs = {
        "SentenceIds": helper.create_variable_for_type_inference(ids.dtype),
        "SentenceScores": helper.create_variable_for_type_inference(scores.dtype),
    }
    helper.append_op(
        "beam_search_decode", {"Ids": ids, "Scores": scores}, outputs, {"beam_size": beam_size, "end_id": end_id}
    )
    return tuple(outputs.values())


@op_layer("gather_tree", typed="ids parents")
def gather_tree(ids: Variable, parents: Variable) -> Attrs:
    """Follows the branches of a beam search from the last step to the first one.

    Args:
        ids: the token of each branch at each step, shape [steps, sources, branches].
        parents: the branch of the previous step that each branch continues; same shape and type as `ids`.

    Returns:
        Variable: the tokens of the branches of the last step; same shape and type as `ids`.

    Example:
        ids = fluid.data('ids', [None, 2, 4], 'int64')
        parents = fluid.data('parents', [None, 2, 4], 'int64')
        sentences = fluid.layers.gather_tree(ids, parents)
    """


@op_layer_with_results(
    "beam_search",
    "selected_ids selected_scores parent_idx",
    fluid_accepts={"pre_ids": "int64", "pre_scores scores": "float32"},
    outputs="selected_scores selected_ids parent_idx",
    returned_if="return_parent_idx",
)
def beam_search(
    pre_ids: Variable,
    pre_scores: Variable,
    ids: Variable | None,
    scores: Variable,
    beam_size: int,
    end_id: int,
    level: int = 0,
    is_accumulated: bool = True,
    name: str | None = None,
    return_parent_idx: bool = False,
) -> Attrs:
    """Runs one step of a beam search: selects the best continuations of each source's branches.

    A branch whose last token is `end_id` is finished and keeps its score.

    Args:
        pre_ids: the last token of each branch, shape [branches, 1], with two levels of sequences: sources and branches.
        pre_scores: the score of each branch, shape [branches, 1].
        ids: the candidate tokens of each branch, shape [branches, K], int64; None: the column indices of `scores`.
        scores: the scores of the candidates, shape [branches, K], same type as `pre_scores`.
        beam_size: number of branches that each source keeps.
        end_id: the token that finishes a branch.
        level: the level of sequences that holds the sources.
        is_accumulated: True: the scores include those of the branches; False: the scores are probabilities, whose
            logarithms are added to `pre_scores`.
        return_parent_idx: whether to return the continued branches too.

    Returns:
        tuple: the selected tokens, shape [rows, 1], int64, and their scores, shape [rows, 1], same type as
            `pre_scores`; with `return_parent_idx`, also the index of the branch that each continues, shape [rows],
            int32.

    Example:
        pre_ids = fluid.data('pre_ids', [None, 1], 'int64', lod_level=2)
        pre_scores = fluid.data('pre_scores', [None, 1], lod_level=2)
        scores, ids = fluid.layers.topk(fluid.data('probabilities', [None, 100]), k=3)
        scores = fluid.layers.log(scores)
        tokens, totals = fluid.layers.beam_search(pre_ids, pre_scores, ids, scores, beam_size=2, end_id=1)
    """
