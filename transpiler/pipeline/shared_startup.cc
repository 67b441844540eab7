#include "transpiler/pipeline/shared_startup.h"

#include "framework/ir/edit.h"
#include "transpiler/passes/initial_values.h"
#include "transpiler/passes/server_copy.h"

namespace penstock {
namespace {

// The server's variable that Fluid starts with this op there; null if it does not.
const Var* StartedOn(const Op& op, const ServerNames& names, const Program& server_startup) {
  const std::string& made = op.OutputName("Out");
  const std::string* held = names.Held(made);
  return server_startup.main().FindVar(held != nullptr ? *held : made);
}

}  // namespace

Program AfterPserverStartups(const Program& trainer_startup, const RoleSet& roles,
                             const PassContext& context) {
  Program out = trainer_startup;
  for (std::size_t i = 0; i < roles.pservers.size(); ++i) {
    const ServerNames names(context, static_cast<int>(i));
    for (const OpEntry& entry : trainer_startup.main().ops()) {
      if (!ShapeDecides(*entry.op)) continue;
      const Var* var = StartedOn(*entry.op, names, roles.pservers[i].startup);
      if (var == nullptr) continue;
      Op shaped = *entry.op;
      const std::vector<Dim>& dims = var->shape().dims();
      shaped.Set("shape", std::vector<std::int32_t>(dims.begin(), dims.end()));
      out.MutableBlock(0).Replace(entry.id, std::move(shaped));
    }
  }
  return out;
}

}  // namespace penstock
