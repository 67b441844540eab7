// Adasum: a sum of gradients of several ranks that does not grow where they point the same way. Two become
//
//   (1 - a.b / (2 |a|^2)) a + (1 - a.b / (2 |b|^2)) b
//
// their sum where they are orthogonal, their mean where they are equal, for any lengths of the two; more are
// combined in pairs, these again in pairs, in the order of the ranks. So a learning rate needs no scaling
// with the number of ranks.
//
//   PENSTOCK_RETURN_IF_ERROR(AllReduceAdasum(rings, *group, gradient, {.label = "w@GRAD"}));
//
// Source: Maleki et al., Scaling Distributed Training with Adaptive Summation (arXiv:2006.02924), equation 1
// and the tree of its section 3; Horovod's op=Adasum.
#pragma once

#include "framework/base/status.h"
#include "framework/runtime/collective_rings.h"

namespace penstock {

// Replaces `data` by its Adasum over all ranks of the group, whose number is a power of two; returns when it
// is there. All ranks get the same bytes. Products are added as doubles; a vector without length changes
// nothing. Of floats: fp16 and bf16 are computed as floats and rounded after each pair.
//
// Cost: a barrier, then log2 P exchanges of S bytes with one other rank, and as much scratch memory as `data`
// has. Where ranks of several hosts share memory (backend "hierarchical") an all-gather of P times S bytes.
//
// kInvalidArgument E-collective-adasum: not of floats, or another number of ranks. The group's errors.
Status AllReduceAdasum(CollectiveRings& rings, CollectiveGroup& group, Elements data,
                       const CollectiveOptions& options = {});

}  // namespace penstock
