// Shape inference for all optimizer ops. The gradient and every state that is sliced with the parameter must
// have the parameter's shape; LearningRate and states that are not sliced must hold one element. Each output
// has the shape of the input that it updates.
#pragma once

#include <string_view>

#include "framework/op/op_def.h"
#include "framework/op/op_registry.h"

namespace penstock {

Status InferUpdate(InferContext& c);
// The same, for an update that does not read state `unread`, whose shape is not checked. Fluid does not slice
// such a state with the parameter.
Status InferUpdateWithout(InferContext& c, std::string_view unread);

}  // namespace penstock
