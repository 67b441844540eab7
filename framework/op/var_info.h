// What inference knows of a variable: its declaration, or the tensor that it holds.
#pragma once

#include "framework/op/infer_context.h"

namespace penstock {

struct Var;
class Tensor;

VarInfo InfoOf(const Var& declared);
VarInfo InfoOf(const Tensor& tensor);

}  // namespace penstock
