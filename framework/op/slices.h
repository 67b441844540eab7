// The result of an op on a slice, from its declaration.
#pragma once

#include <functional>
#include <string>

#include "framework/ir/op.h"
#include "framework/ir/var.h"
#include "framework/op/op_registry.h"

namespace penstock {

// kNeedsWhole if the registry does not know the op.
OnSlices WhatOnSlices(const OpRegistry& ops, const Op& op);

// Whether the op, run on some rows of its arguments, computes these rows of the result. `whole` is the
// shape of the tensors that are cut into rows; `find` returns the declaration of a variable, or null.
//
//   elementwise_mul(X : f32[13, 2048], Y : f32[1])     true
//   elementwise_mul(X : f32[13, 2048], Y : f32[13])    false: Y is not cut
//   reduce_sum(X : f32[13, 2048])                      false
//   fill_constant() : f32[13, 2048]                    false: no argument says how many rows there are
//
// The op must be declared elementwise, its arguments must have the shape `whole` or one element, and a result
// of that shape needs an input of that shape. An optimizer is judged by its declaration alone.
bool WorksByRows(const OpRegistry& ops, const Op& op, const Shape& whole,
                 const std::function<const Var*(const std::string&)>& find);

}  // namespace penstock
