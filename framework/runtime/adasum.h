// Adasum: a sum of several ranks' gradients that does not grow where they point the same way. Two gradients
// combine to
//
//   (1 - a.b / (2 |a|^2)) a + (1 - a.b / (2 |b|^2)) b
//
// which is their sum if they are orthogonal and their mean if they are equal, whatever their lengths. More
// ranks are combined in pairs, and the results again in pairs, in the order of the ranks. The learning rate
// therefore needs no scaling with the number of ranks.
//
//   PENSTOCK_RETURN_IF_ERROR(AllReduceAdasum(rings, *group, gradient, {.label = "w@GRAD"}));
//
// Source: Maleki et al., Scaling Distributed Training with Adaptive Summation (arXiv:2006.02924), equation 1
// and the tree of its section 3; Horovod's op=Adasum.
#pragma once

#include "framework/base/status.h"
#include "framework/runtime/collective_rings.h"

namespace penstock {

// Replaces `data` by its Adasum over all ranks of the group; the number of ranks must be a power of two.
// Returns when the result is complete. All ranks get the same bytes. Dot products are summed in double; a
// vector of zeros changes nothing. Accepts floats only; fp16 and bf16 are computed as floats and rounded
// after each pair.
//
// Cost for P ranks and S bytes of data: a barrier, then log2 P exchanges of S bytes with one other rank, and
// scratch memory of S bytes. The "hierarchical" backend uses one all-gather of P times S bytes instead.
//
// kInvalidArgument E-collective-adasum: not floats, or not a power of two ranks. Errors of the group.
Status AllReduceAdasum(CollectiveRings& rings, CollectiveGroup& group, Elements data,
                       const CollectiveOptions& options = {});

}  // namespace penstock
