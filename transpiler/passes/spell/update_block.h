// Makes the block in which a pserver updates its slice or shard of a parameter: the user's clipping ops and
// regularizers, then the user's optimizer, then other ops that write the parameter, on the server's own
// variables.
//
//   UpdateBlocks blocks(out, context);
//   PENSTOCK_RETURN_IF_ERROR(blocks.Add(SiteOf(context.plan, update), parent, kPass));
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "framework/ir/program.h"
#include "transpiler/passes/context.h"
#include "transpiler/passes/spell/server_copy.h"

namespace penstock::passes {

// The slice or shard to update, and the names of it and its gradient on the server.
struct UpdateSite {
  const plan::TrainedParam* trained = nullptr;
  std::string param, grad;
  Shape whole, here;  // variables of shape `whole` get shape `here` on the server
  VarKind kind = VarKind::kTensor;
  std::map<std::string, std::string> own;  // written variables whose names differ from the user's
  // Completes the declaration of state that is sliced like the parameter.
  std::function<void(const std::string& name, Var& state)> describe;
};
UpdateSite SiteOf(const plan::PlacementPlan& plan, const ServerUpdate& update);

class UpdateBlocks {
 public:
  // Blocks and declarations go to `out`, which must outlive this.
  UpdateBlocks(Program& out, const PassContext& context);
  // Appends a block whose parent is `parent`. Declares missing temporaries and state in block 0.
  Status Add(const UpdateSite& site, int parent, std::string_view pass);
  // The same with only the ops that measure the gradient.
  Status AddMeasures(const UpdateSite& site, int parent, std::string_view pass);

 private:
  Status AddBlock(const std::vector<OpId>& ops, const UpdateSite& site, int parent, std::string_view pass);
  Op Mapped(const Op& op, const std::function<std::string(const std::string& name, bool written)>& rename);
  Op Beside(const Op& op, const UpdateSite& site);
  Op Optimizer(const Op& op, const UpdateSite& site);
  // The name in this update of a variable of the user's.
  std::string Here(const std::string& name, const UpdateSite& site) const;
  bool KeepsHeight(const std::string& name, const UpdateSite& site) const;
  void DeclareTemporary(const std::string& name, const std::string& here, const UpdateSite& site,
                        bool written);
  void Reshape(const std::string& here, const UpdateSite& site);
  bool IsStateBeside(const Var& users, const UpdateSite& site) const;
  void DeclareState(const std::string& name, const std::string& here, const UpdateSite& site);

  Program& out_;
  const PassContext& context_;
  ServerNames names_;
  std::set<std::string> of_grad_;  // temporaries computed from a gradient
  std::set<std::string> of_rows_;  // temporaries computed from other selected rows
};

}  // namespace penstock::passes
