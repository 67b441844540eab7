// Makes the gradient ops of one forward op from its declaration (op/op_def.h), with the names of the
// variables filled in.
//
//   GradNames names;
//   PENSTOCK_ASSIGN_OR_RETURN(std::vector<Op> grads, MakeGradOps(ops, mul, {"x@GRAD"}, names));
//   (X@GRAD=[], Y@GRAD=w@GRAD) = mul_grad(X=x, Y=w, Out@GRAD=h@GRAD)
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/op.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock {

using NameSet = std::set<std::string, std::less<>>;

// "w" -> "w@GRAD". The name is never parsed: GradNames stores to which variable a gradient belongs.
std::string GradName(std::string_view var);

// Maps each gradient to its forward variable, during one run of append_backward.
class GradNames {
 public:
  // `grad` is the gradient of `forward`.
  void Add(const std::string& grad, const std::string& forward) { forward_of_[grad] = forward; }
  // `part` is one of the addends of `grad`.
  void AddPart(const std::string& part, const std::string& grad);
  // Gives a gradient another name.
  void Rename(const std::string& from, const std::string& to);

  bool Contains(std::string_view name) const { return forward_of_.contains(name) || part_of_.contains(name); }
  // The variable whose whole gradient is `name`; "" if there is none.
  const std::string& ForwardOfWhole(std::string_view name) const;
  // As ForwardOfWhole, but also accepts a part of a gradient.
  const std::string& ForwardOf(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> forward_of_;
  std::map<std::string, std::string, std::less<>> part_of_;
};

// The block of an op, and the gradient block of the block that the op runs (-1: it runs none).
struct GradSite {
  const Program* program = nullptr;
  int block = 0;
  int grad_block = -1;
};

// `no_grad` names gradients that are not needed: the gradient op gets no argument for them, or "@EMPTY@" in a
// slot of several variables, to keep the positions of the others. Returns no ops if the declaration says
// NoGrad or no input needs a gradient. Gradients of outputs are always named; the caller handles those that
// no op writes.
//
// kInvalidArgument E-backward-no-grad: the op has no gradient.
Result<std::vector<Op>> MakeGradOps(const OpRegistry& ops, const Op& op, const NameSet& no_grad,
                                    GradNames& names, const GradSite& site = {});

}  // namespace penstock
