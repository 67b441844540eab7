// Appends ops to block 0 as Fluid's Block.append_op does: all input slots of the schema are present, defaults
// are written out, the framework's attributes are set, and output variables get their type.
//
//   OpWriter out(ops, program, scopes);
//   out.SetRole(OpRole::kOptimize, {"w", "w@GRAD"});
//   PENSTOCK_RETURN_IF_ERROR(out.Append(Op("sgd").AddInput("Param", {"w"})...));
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/name_scope.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"

namespace penstock {

class OpWriter {
 public:
  OpWriter(const OpRegistry& ops, Program& program, const NameScopes& scopes)
      : ops_(ops), program_(program), scopes_(scopes) {}

  // Applies to all following ops. `role_vars` is op_role_var.
  void SetRole(OpRole role, std::vector<std::string> role_vars = {}) {
    role_ = role;
    role_vars_ = std::move(role_vars);
  }
  void SetDevice(std::string device) { device_ = std::move(device); }

  // Outputs must be declared, at least as a variable without a type.
  Status Append(Op op);
  // Returns the op as Append would add it, without adding it.
  Result<Op> Complete(Op op) const;

  Program& program() { return program_; }

 private:
  const OpRegistry& ops_;
  Program& program_;
  const NameScopes& scopes_;
  OpRole role_ = OpRole::kForward;
  std::vector<std::string> role_vars_;
  std::string device_;
};

}  // namespace penstock
