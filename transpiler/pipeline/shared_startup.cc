#include "transpiler/pipeline/shared_startup.h"

#include "framework/base/view_map.h"
#include "transpiler/passes/spell/initial_values.h"
#include "transpiler/passes/spell/server_copy.h"

namespace penstock {
namespace {

// The server's variable that Fluid initializes with this op; null if there is none.
const Var* StartedOn(const Op& op, const passes::ServerNames& names, const Program& server_startup) {
  const std::string& made = op.OutputName("Out");
  const std::string* held = names.Held(made);
  return server_startup.main().FindVar(held != nullptr ? *held : made);
}

// The variables of the user's startup program, including added ones, that pservers initialize, each with the
// shape on the last of these pservers.
ViewMap<Shape> LastShapes(const Program& started, const RoleSet& roles, const passes::PassContext& context,
                          ViewMap<Shape> shapes) {
  for (std::size_t i = 0; i < roles.pservers.size(); ++i) {
    const passes::ServerNames names(context, static_cast<int>(i));
    for (const OpEntry& entry : started.main().ops()) {
      if (!passes::ShapeDecides(*entry.op)) continue;
      const Var* var = StartedOn(*entry.op, names, roles.pservers[i].startup);
      if (var != nullptr) shapes[entry.op->OutputName("Out")] = var->shape();
    }
  }
  return shapes;
}

}  // namespace

Program AfterPserverStartups(const Program& trainer_startup, const RoleSet& roles,
                             const passes::PassContext& context) {
  const ViewMap<Shape> shapes =
      LastShapes(trainer_startup, roles, context, LastShapes(context.startup, roles, context, {}));
  Program out = trainer_startup;
  Block& main = out.MutableBlock(0);
  for (const OpEntry& entry : trainer_startup.main().ops()) {
    const auto shape = shapes.find(entry.op->OutputName("Out"));
    if (shape == shapes.end() || entry.op->FindAttr("shape") == nullptr) continue;
    const std::vector<Dim>& dims = shape->second.dims();
    Op shaped = *entry.op;
    if (passes::ShapeDecides(shaped)) {
      shaped.Set("shape", std::vector<std::int32_t>(dims.begin(), dims.end()));
    } else {  // fake_init took its shape from the table's initializer, and the variable took it from there
      shaped.Set("shape", dims);
      Var table = *main.FindVar(shape->first);
      table.type->shape = shape->second;
      main.SetVar(std::move(table));
    }
    main.Replace(entry.id, std::move(shaped));
  }
  return out;
}

}  // namespace penstock
