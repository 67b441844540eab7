// What all optimizer ops check: the gradient, and every state that is sliced with the parameter, has the
// parameter's shape; LearningRate and the whole states hold one element; each output is shaped like what it
// updates.
#pragma once

#include <string_view>

#include "framework/op/op_def.h"
#include "framework/op/op_registry.h"

namespace penstock {

Status InferUpdate(InferContext& c);
// The same for an update that does not read the state `unread`: its shape is its own affair. Fluid leaves
// such a state whole beside a slice of the parameter.
Status InferUpdateWithout(InferContext& c, std::string_view unread);

}  // namespace penstock
