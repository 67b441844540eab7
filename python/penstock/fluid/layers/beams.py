"""Collects the results of a beam search from the end of each branch to its beginning."""

from penstock.fluid._argument_types import element_types
from penstock.fluid.layer_helper import LayerHelper

__all__ = ['beam_search_decode', 'gather_tree']


@element_types(ids='int64', scores='float32 float64')
def beam_search_decode(ids, scores, beam_size, end_id, name=None):
    """Collects the sentences that the steps of `beam_search` have selected.

    Args:
        ids (Variable): array of the selected tokens of each step, int64, with two levels of sequences.
        scores (Variable): array of their scores, float32 or float64.
        beam_size (int): the maximum number of sentences per source.
        end_id (int): the token that ends a sentence; one is kept at the end of each sentence.
        name (str): name of the layer.

    Returns:
        tuple: (tokens, scores), two Variables with two levels of sequences: sources of sentences, the best first,
        and sentences of tokens.

    Raises:
        TypeError: `ids` or `scores` is not a Variable, or has another element type.
        penstock.ProgramError: `beam_size` is below 1, or an array has another element type.

    Example:
        step = fluid.layers.fill_constant([1], 'int64', 0)
        ids = fluid.layers.array_write(fluid.data('ids', [None, 1], 'int64', lod_level=2), step)
        scores = fluid.layers.array_write(fluid.data('scores', [None, 1], lod_level=2), step)
        sentences, of_sentences = fluid.layers.beam_search_decode(ids, scores, beam_size=4, end_id=1)
    """
    helper = LayerHelper('beam_search_decode', name=name).takes(ids=ids, scores=scores)
    outputs = {
        'SentenceIds': helper.create_variable_for_type_inference(ids.dtype),
        'SentenceScores': helper.create_variable_for_type_inference(scores.dtype)
    }
    helper.append_op('beam_search_decode', {'Ids': ids, 'Scores': scores}, outputs, {
        'beam_size': beam_size,
        'end_id': end_id
    })
    return tuple(outputs.values())


@element_types(ids='int32 int64', parents='int32 int64')
def gather_tree(ids, parents):
    """Follows the branches of a beam search from the last step to the first one.

    Args:
        ids (Variable): the token of each branch at each step, int32 or int64, shape [steps, sources, branches].
        parents (Variable): the branch of the previous step that each branch continues, of the same shape and type.

    Returns:
        Variable: the tokens of the branches of the last step, of the same shape and type.

    Raises:
        TypeError: `ids` or `parents` is not a Variable, or has another element type.
        penstock.ProgramError: the shapes or types differ.

    Example:
        ids = fluid.data('ids', [None, 2, 4], 'int64')
        parents = fluid.data('parents', [None, 2, 4], 'int64')
        sentences = fluid.layers.gather_tree(ids, parents)
    """
    helper = LayerHelper('gather_tree').takes(ids=ids, parents=parents)
    out = helper.create_variable_for_type_inference(ids.dtype)
    helper.append_op('gather_tree', {'Ids': ids, 'Parents': parents}, {'Out': out})
    return out
