// Makes a pserver serve its shard of each distributed table: adds a block that updates the shard, one for
// each request that trainers make, and one that saves all shards.
//
//   plan    table t, rows by id
//   after   persist t : rows<f32[1000, 32]>
//           block 4 in 0 { (ParamOut=t) = adam(Param=t, Grad=t@GRAD, Moment1=t_moment1, ...) }
//           block 5 in 4 { rows0 = lookup_sparse_table(W=t, Ids=ids0) }
//           block 6 in 4 { save(X=t) }
//
// State shaped like the table is selected rows too. Fluid updates by sgd whatever optimizer the user chose,
// and leaves out regularizers; compat does the same. Requires: ServeGradients ran; later passes do not expect
// the optimizers' blocks to be the last.
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/lookup_requests.h"
#include "transpiler/passes/spell/server_copy.h"
#include "transpiler/passes/spell/update_block.h"
#include "transpiler/plan/names.h"
#include "transpiler/plan/optimizers.h"

namespace penstock::passes {
namespace {

constexpr char kServeTables[] = "serve_tables";

class TableServer {
 public:
  TableServer(Program& out, const PassContext& context)
      : out_(out),
        context_(context),
        updates_(out, context),
        requests_(context.main.main(), context.plan.conventions()) {}

  // Adds the block that updates the shard, and returns its index.
  Result<int> AddUpdate(const plan::TablePlacement& table, int parent) {
    const plan::TrainedParam* trained = Trained(table.table);
    if (trained == nullptr) return PassError(kServeTables, "nothing updates table ", table.table);
    const int index = out_.block_count();
    Declare(table);
    const std::string grad = plan::UpdatedShardGradName(context_.plan, table, context_.self.index);
    if (context_.plan.conventions().tables_keep_optimizer) {
      PENSTOCK_RETURN_IF_ERROR(updates_.Add(Site(table, *trained, grad), parent, kServeTables));
    } else {
      PENSTOCK_RETURN_IF_ERROR(AddFluidsUpdate(table, *trained, grad, parent));
    }
    serve_.blocks.push_back({index});
    serve_.grad_to_block.push_back(StrCat(grad, ":", index));
    return index;
  }

  Status AddLookups(const plan::SparseTable& table, int parent) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<LookupRequest> requests, requests_.Of(table));
    for (const LookupRequest& request : requests) AddLookup(table.param, request, parent);
    return OkStatus();
  }

  void AddSave(int parent) {
    Var path{.name = std::string(kTablePathVar), .kind = VarKind::kRaw, .type = {}, .persistable = true};
    out_.MutableBlock(0).SetVar(std::move(path));
    Block& block = out_.AddBlock(parent);
    serve_.save_block = block.index();
    for (const plan::TablePlacement& table : context_.plan.tables) {
      block.Append(std::move(MakeSaveTable(table.table).SetMadeBy(kServeTables)));
    }
  }

  const TableServeSpec& serve() const { return serve_; }

 private:
  const plan::TrainedParam* Trained(const std::string& param) const {
    for (const plan::TrainedParam& trained : context_.analysis.params) {
      if (trained.param == param && trained.optimizer != OpId::kNone) return &trained;
    }
    return nullptr;
  }

  Shape ShardShape(const plan::TablePlacement& table) const {
    return table.ShardShape(static_cast<int>(context_.plan.pservers.size()));
  }

  void Declare(const plan::TablePlacement& table) {
    Var shard = TensorVar(table.table, table.dtype, ShardShape(table));
    shard.kind = VarKind::kSelectedRows;
    shard.persistable = true;
    shard.facts.is_distributed = context_.plan.conventions().marks_shards;
    out_.MutableBlock(0).SetVar(std::move(shard));
    Var grad = TensorVar(plan::UpdatedShardGradName(context_.plan, table, context_.self.index), table.dtype,
                         table.shape);
    grad.kind = VarKind::kSelectedRows;
    grad.persistable = true;
    out_.MutableBlock(0).SetVar(std::move(grad));
  }

  UpdateSite Site(const plan::TablePlacement& table, const plan::TrainedParam& trained,
                  const std::string& grad) const {
    return {.trained = &trained,
            .param = table.table,
            .grad = grad,
            .whole = table.shape,
            .here = ShardShape(table),
            .kind = VarKind::kSelectedRows,
            .describe = [](const std::string&, Var& state) { state.facts.is_distributed = true; }};
  }

  Status AddFluidsUpdate(const plan::TablePlacement& table, const plan::TrainedParam& trained,
                         const std::string& grad, int parent) {
    const Op* users = context_.main.main().FindOp(trained.optimizer);
    if (users == nullptr) return PassError(kServeTables, "an op of the analysis is gone");
    const Op update = plan::FluidTableUpdate(*users, table.table, grad);
    for (const std::string& name : update.InputNames()) {
      const Var* var = context_.main.main().FindVar(name);
      if (out_.main().FindVar(name) == nullptr && var != nullptr)
        out_.MutableBlock(0).SetVar(ServerCopy(*var));
    }
    Op made = update;
    out_.AddBlock(parent).Append(std::move(made.SetMadeBy(kServeTables)));
    return OkStatus();
  }

  void AddLookup(const std::string& table, const LookupRequest& request, int parent) {
    const Block& main = context_.main.main();
    const plan::Conventions& conventions = context_.plan.conventions();
    const int number = next_request_++;
    const Var asked = AskedIds(main, request, number, context_.self.index, conventions);
    Var answered = AnsweredRows(main, request, number, context_.self.index, conventions);
    // Fluid's op infers a number of rows equal to the rank of the ids.
    answered.type->shape = answered.shape().WithRows(asked.shape().rank());
    const std::int64_t padding_idx =
        conventions.one_request_per_table
            ? -1
            : main.FindOp(request.lookups.front())->GetOr<std::int64_t>("padding_idx", -1);
    Block& block = out_.AddBlock(parent);
    serve_.ids_to_block.push_back(StrCat(asked.name, ":", block.index()));
    block.Append(
        std::move(MakeTableLookup(asked.name, table, answered.name, padding_idx).SetMadeBy(kServeTables)));
    out_.MutableBlock(0).SetVar(asked);
    out_.MutableBlock(0).SetVar(std::move(answered));
  }

  Program& out_;
  const PassContext& context_;
  UpdateBlocks updates_;
  LookupRequests requests_;
  TableServeSpec serve_;
  int next_request_ = 0;
};

}  // namespace

Result<Program> ServeTables(const Program& in, const PassContext& context) {
  const std::vector<plan::TablePlacement>& tables = context.plan.tables;
  if (tables.empty()) return in;
  Program out = in;
  const Block& globals = out.block(0);
  if (globals.ops().empty() || !IsListenAndServ(*globals.ops().back().op)) {
    return PassError(kServeTables, "block 0 does not end with the op that waits for gradients");
  }
  TableServer server(out, context);
  PENSTOCK_ASSIGN_OR_RETURN(const UpdateLayout layout,
                            LayoutOf(kServeTables, out, context.shares.UpdatesOn(context.self.index)));
  // Below the same block as the updates of slices.
  const int parent =
      layout.updates.empty() ? out.block_count() - 1 : out.block(layout.updates.front()).parent();
  std::vector<int> updates;
  for (const plan::TablePlacement& table : tables) {
    PENSTOCK_ASSIGN_OR_RETURN(const int block, server.AddUpdate(table, parent));
    updates.push_back(block);
  }
  std::size_t at = 0;
  for (const plan::SparseTable& table : context.analysis.tables) {
    if (table.distributed) PENSTOCK_RETURN_IF_ERROR(server.AddLookups(table, updates[at++]));
  }
  server.AddSave(updates.front());
  const OpEntry serve = out.block(0).ops().back();
  out.MutableBlock(0).Replace(serve.id, WithTables(*serve.op, server.serve()));
  return out;
}

}  // namespace penstock::passes
