// Makes the VarInfo of a variable from its declaration, or from the tensor that it holds.
#pragma once

#include "framework/op/infer_context.h"

namespace penstock {

struct Var;
class Tensor;

VarInfo InfoOf(const Var& declared);
VarInfo InfoOf(const Tensor& tensor);

}  // namespace penstock
