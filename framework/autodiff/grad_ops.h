// The gradient ops of one forward op, named but not yet placed: what its declaration says (op/op_def.h), with
// the names of the variables filled in.
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

// "w" -> "w@GRAD". Only ever made, never taken apart: GradNames remembers which variable a gradient belongs
// to.
std::string GradName(std::string_view var);

// Which variable each gradient belongs to, for one run of append_backward.
class GradNames {
 public:
  // `grad` is the gradient of `forward`.
  void Add(const std::string& grad, const std::string& forward) { forward_of_[grad] = forward; }
  // `part` is one of the addends of `grad`.
  void AddPart(const std::string& part, const std::string& grad);
  // `grad` goes on under another name.
  void Rename(const std::string& from, const std::string& to);

  bool Contains(std::string_view name) const { return forward_of_.contains(name) || part_of_.contains(name); }
  // The variable whose whole gradient this is; "" if it is none.
  const std::string& ForwardOfWhole(std::string_view name) const;
  // The same for parts too.
  const std::string& ForwardOf(std::string_view name) const;

 private:
  std::map<std::string, std::string, std::less<>> forward_of_;
  std::map<std::string, std::string, std::less<>> part_of_;
};

// Where an op stands, and the block that is the gradient of the one it runs (-1: it runs none).
struct GradSite {
  const Program* program = nullptr;
  int block = 0;
  int grad_block = -1;
};

// `no_grad` holds the names of gradients that nobody needs. An input of that kind gets no argument, or
// "@EMPTY@" in a slot of several variables, where the others' places must not move. No ops if the declaration
// says NoGrad, or if no input needs a gradient. Gradients of outputs are named in any case: who reads one
// that nobody writes is the caller's question.
//
// kInvalidArgument E-backward-no-grad: the op has no gradient.
Result<std::vector<Op>> MakeGradOps(const OpRegistry& ops, const Op& op, const NameSet& no_grad,
                                    GradNames& names, const GradSite& site = {});

}  // namespace penstock
