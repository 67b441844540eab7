"""Weight decay: a term that is added to the gradient of each parameter before its optimizer op."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.parameters.regularizer import L1Decay, L1DecayRegularizer, L2Decay, L2DecayRegularizer
    from penstock._src.parameters.regularizer import WeightDecayRegularizer as WeightDecayRegularizer
    from penstock._src.parameters.regularizer import append_regularization_ops as append_regularization_ops
    from penstock._src.parameters.regularizer import regularizers_in as regularizers_in
    from penstock.fluid import framework as framework

__all__ = ['L1Decay', 'L1DecayRegularizer', 'L2Decay', 'L2DecayRegularizer']

facade.make(__name__)
