// Attributes in the kinds that ops declare. Files of some versions store an attribute in another kind:
// is_test as an int, axes as longs. What reads the attributes of ops (the executor, shape inference,
// autodiff, transpile, check, memory) first replaces an op or a program by what Conformed returns, so that
// all other code sees declared kinds only:
//
//   const std::optional<Op> changed = Conformed(def, op);
//   InferContext context(def, changed ? *changed : op, lookup);
#pragma once

#include <optional>

#include "framework/base/status.h"
#include "framework/ir/attr.h"
#include "framework/ir/op.h"
#include "framework/ir/program.h"

namespace penstock {

class OpDef;
class OpRegistry;

// The attribute as `kind`, if no value changes; nullopt otherwise:
//
//   bool, int, long, float       converts to another of these if that can represent the number (a bool: 0, 1)
//   bools, ints, longs, floats   likewise, if every element converts
//   an empty list                converts to an empty list of any kind
std::optional<Attr> ConvertAttr(const Attr& attr, AttrKind kind);

// The op with every attribute in its declared kind; nullopt if it is so already. An attribute that does not
// convert is left as it is.
std::optional<Op> Conformed(const OpDef& def, const Op& op);
// The same for every op of a program that the registry knows.
std::optional<Program> Conformed(const OpRegistry& ops, const Program& program);
// kInvalidArgument E-op-attr: the value of an attribute cannot be converted to the declared kind.
Status CheckAttrKinds(const OpDef& def, const Op& op);

}  // namespace penstock
