// All ops that a process knows. Its owner fills it explicitly (operators/all_ops.h); a test may build a
// registry of a single op. Read-only after filling, and then safe for any number of threads.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/op/op_def.h"

namespace penstock {

class OpRegistry {
 public:
  OpRegistry() = default;
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  OpDef& Add(std::string type);                      // adding a type twice is a bug of ours
  const OpDef* Find(std::string_view type) const;    // gradient ops included; null if unknown
  Result<const OpDef*> Require(const Op& op) const;  // kInvalidArgument E-op-unknown, with similar names
  std::vector<const OpDef*> All() const;             // sorted by type
  // Builds the gradient ops and checks every declaration. Errors are, for example, an optimizer whose state
  // has no slot, a kernel without shape inference, or a gradient that names an unknown slot. Call once, after
  // the last Add.
  Status Finish();

 private:
  std::map<std::string, std::unique_ptr<OpDef>, std::less<>> defs_;
  std::vector<std::shared_ptr<OpDef>> grads_;
  std::map<std::string, const OpDef*, std::less<>> by_type_;
};

// Infers the types and shapes of an op's outputs in a block and declares or updates the output variables, as
// Block.append_op does. An op unknown to the registry is an error.
class Program;
Status InferAndDeclare(const OpRegistry& ops, Program& program, int block, const Op& op);

}  // namespace penstock
