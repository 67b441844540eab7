"""Weight decay: a term that is added to the gradient of each parameter before its optimizer op."""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade
from penstock._src.parameters.regularizer import (
    L1Decay as L1Decay, L1DecayRegularizer as L1DecayRegularizer, L2Decay as L2Decay,
    L2DecayRegularizer as L2DecayRegularizer, WeightDecayRegularizer as WeightDecayRegularizer,
    append_regularization_ops as append_regularization_ops, regularizers_in as regularizers_in,
)
from penstock.fluid import framework as framework

__all__ = ['L1Decay', 'L1DecayRegularizer', 'L2Decay', 'L2DecayRegularizer']

facade.make(__name__, elsewhere=('framework',))
