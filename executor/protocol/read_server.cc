// A server's side of the contract, read from its program.
#include <algorithm>
#include <charconv>
#include <set>

#include "executor/protocol/contract_pieces.h"

namespace penstock::protocol {
namespace {

// What one optimize block says.
class BlockReader {
 public:
  BlockReader(const OpRegistry& ops, const Program& program, int block,
              const std::set<std::string_view>& received)
      : ops_(ops), program_(program), block_(block), received_(received) {}

  Result<ServedParam> Read(int trainers) {
    served_.block = block_;
    served_.elementwise = true;
    PENSTOCK_RETURN_IF_ERROR(FindTable());
    for (const OpEntry& entry : program_.block(block_).ops()) PENSTOCK_RETURN_IF_ERROR(ReadOp(*entry.op));
    if (served_.param.name.empty() && Measures()) {
      return Unimplemented("E-server-measures", "block ", block_,
                           " of the pserver's program measures a gradient for the norm over all of them, ",
                           "which does not run yet; transpile with clip=local");
    }
    if (served_.param.name.empty()) {
      return InvalidArgument("E-server-optimizer", "block ", block_,
                             " of the pserver's program has no optimizer op");
    }
    if (static_cast<int>(served_.grads.size()) != trainers) {
      return InvalidArgument("E-server-merge", "block ", block_, " merges ", served_.grads.size(),
                             " gradients for ", served_.param.name, ", but there are ", trainers,
                             " trainers");
    }
    if (served_.rows && served_.param.shape.rank() == 0) {
      return InvalidArgument("E-server-merge", served_.param.name, " has no rows, but its gradient does");
    }
    served_.elementwise = served_.elementwise && !served_.rows;
    if (served_.by_id) PENSTOCK_RETURN_IF_ERROR(TakeWholeTable());
    return std::move(served_);
  }

 private:
  // Works on a gradient that it does not apply.
  bool Measures() const {
    const auto& ops = program_.block(block_).ops();
    return !served_.grads.empty() && std::any_of(ops.begin(), ops.end(), [](const OpEntry& entry) {
      return Has(entry.op->role(), Role::kOptimize);
    });
  }

  // A parameter that is selected rows is a shard of a table. listen_and_serv does not list its gradients:
  // they are the rows that the block reads without having written them, and that are no state.
  Status FindTable() {
    for (const OpEntry& entry : program_.block(block_).ops()) {
      PENSTOCK_ASSIGN_OR_RETURN(const OpDef* def, ops_.Require(*entry.op));
      if (!def->optimizer().has_value() || !IsRows(entry.op->InputName(def->optimizer()->param_slot)))
        continue;
      served_.by_id = true;
      for (const Slot& slot : entry.op->inputs()) {
        if (slot.name != def->optimizer()->grad_slot) kept_.insert(slot.args.begin(), slot.args.end());
      }
    }
    return OkStatus();
  }

  // What trainers send are rows of the whole, of which the declared shard is a part.
  Status TakeWholeTable() {
    PENSTOCK_ASSIGN_OR_RETURN(const ContractPiece grad,
                              PieceOf(program_, block_, served_.grads.front(), served_.grads.front()));
    const Shape& shard = served_.param.shape;
    if (grad.shape.rank() == 0 || grad.dtype != served_.param.dtype ||
        grad.shape.WithRows(shard[0]) != shard) {
      return InvalidArgument("E-server-merge", "block ", block_, " updates ", served_.param, " by ", grad,
                             ", whose rows are others");
    }
    served_.param.shape = grad.shape;
    served_.param.rows = false;
    return OkStatus();
  }

  bool IsRows(const std::string& name) const {
    const Var* var = program_.FindVar(block_, name);
    return var != nullptr && var->kind == VarKind::kSelectedRows;
  }
  bool IsGradient(const std::string& name) const {
    if (!served_.by_id) return received_.contains(name);
    return IsRows(name) && !kept_.contains(name) && !written_.contains(name);
  }

  Status ReadOp(const Op& op) {
    PENSTOCK_ASSIGN_OR_RETURN(const OpDef* def, ops_.Require(op));
    served_.elementwise = served_.elementwise && def->elementwise();
    for (const Slot& slot : op.inputs()) {
      for (const std::string& arg : slot.args) {
        if (!IsGradient(arg)) continue;
        if (std::find(served_.grads.begin(), served_.grads.end(), arg) != served_.grads.end()) continue;
        PENSTOCK_RETURN_IF_ERROR(AddGradient(arg));
      }
    }
    for (const std::string& name : op.OutputNames()) written_.insert(name);
    if (!def->optimizer().has_value()) return OkStatus();
    if (!served_.param.name.empty()) {
      return AddPlace(
          InvalidArgument("E-server-optimizer", "block ", block_, " updates both ", served_.param.name,
                          " and ", op.InputName(def->optimizer()->param_slot)),
          op);
    }
    const std::string& param = op.InputName(def->optimizer()->param_slot);
    PENSTOCK_ASSIGN_OR_RETURN(served_.param, PieceOf(program_, block_, param, param));
    return OkStatus();
  }

  // All trainers send rows, or none does.
  Status AddGradient(const std::string& name) {
    const bool rows = IsRows(name);
    if (!served_.grads.empty() && rows != served_.rows) {
      return InvalidArgument("E-server-merge", "block ", block_, " merges ", served_.grads.front(), " and ",
                             name, ", of which one is selected rows");
    }
    served_.rows = rows;
    served_.grads.push_back(name);
    return OkStatus();
  }

  const OpRegistry& ops_;
  const Program& program_;
  const int block_;
  const std::set<std::string_view>& received_;
  std::set<std::string> kept_;     // of a table: itself, and what its optimizer reads beside the gradient
  std::set<std::string> written_;  // so far
  ServedParam served_;
};

// "name of the question:number of the block that answers it", for each table that is dealt out by id.
Status ReadLookups(const Program& program, const Op& listen_and_serv, std::vector<ServedParam>& params) {
  for (const std::string& entry :
       listen_and_serv.GetOr<std::vector<std::string>>("prefetch_var_name_to_block_id", {})) {
    const std::size_t colon = entry.rfind(':');
    const std::string ids = entry.substr(0, colon);
    int block = 0;
    if (colon != std::string::npos)
      std::from_chars(entry.data() + colon + 1, entry.data() + entry.size(), block);
    if (block <= 0 || block >= program.block_count()) {
      return InvalidArgument("E-server-block", "prefetch_var_name_to_block_id holds ", Quote(entry),
                             ", which names no block of the program");
    }
    const auto& ops = program.block(block).ops();
    const bool one = ops.size() == 1 && ops.front().op->type() == "lookup_sparse_table";
    const std::string table = one ? ops.front().op->InputName("W") : "";
    const auto served = std::find_if(params.begin(), params.end(), [&](const ServedParam& param) {
      return param.by_id && param.param.name == table;
    });
    if (served == params.end() || ops.front().op->InputName("Ids") != ids) {
      return InvalidArgument("E-server-lookup", "block ", block, " of the pserver's program, which answers ",
                             ids,
                             ", must be one lookup_sparse_table by them, of a table that a block updates");
    }
    served->lookups.push_back({ids, ops.front().op->GetOr<std::int64_t>("padding_idx", -1)});
  }
  return OkStatus();
}

// `params` are sorted.
Status RequireOnce(const std::vector<ServedParam>& params) {
  for (std::size_t i = 1; i < params.size(); ++i) {
    const ServedParam& a = params[i - 1];
    const ServedParam& b = params[i];
    if (a.param.name != b.param.name) continue;
    if (a.start || b.start) {
      return InvalidArgument("E-server-twice", a.param.name, " is a start value that ",
                             a.start && b.start ? "is listed twice" : "is also updated by a block");
    }
    return InvalidArgument("E-server-twice", a.param.name, " is updated by blocks ", a.block, " and ",
                           b.block);
  }
  return OkStatus();
}

// What listen_and_serv says of itself, blocks aside.
Result<ServerFacts> ReadHead(const Program& program, const Op& listen_and_serv) {
  ServerFacts facts;
  facts.address = listen_and_serv.GetOr<std::string>("endpoint", "");
  facts.trainers = listen_and_serv.GetOr<std::int32_t>("Fanin", 1);
  if (facts.trainers < 1 || facts.trainers > 1'000'000) {
    return InvalidArgument("E-server-trainers", "listen_and_serv is made for ", facts.trainers, " trainers");
  }
  const auto mode = listen_and_serv.GetOr<std::int32_t>("distributed_mode", 0);
  if (mode != 0) {
    return Unimplemented("E-server-mode", "listen_and_serv asks for distributed_mode ", mode,
                         "; only 0 (sync) runs so far");
  }
  facts.save_block = listen_and_serv.GetOr<std::int32_t>("checkpint_block_id", -1);
  facts.lr_block = listen_and_serv.GetOr<std::int32_t>("lr_decay_block_id", -1);
  for (const auto& [attr, block] :
       {std::pair{"lr_decay_block_id", facts.lr_block}, std::pair{"checkpint_block_id", facts.save_block}}) {
    if (block < program.block_count()) continue;
    return InvalidArgument("E-server-block", attr, " is ", block, "; the program has ", program.block_count(),
                           " blocks");
  }
  return facts;
}

// What the optimize blocks update, and that they merge all that is received.
Status ReadUpdates(const OpRegistry& ops, const Program& program, const Op& listen_and_serv,
                   ServerFacts& facts) {
  const ArgList& x = listen_and_serv.Input("X");
  const std::set<std::string_view> received(x.begin(), x.end());
  std::size_t merged = 0;
  for (const BlockRef ref : listen_and_serv.GetOr<std::vector<BlockRef>>("optimize_blocks", {})) {
    if (ref.index <= 0 || ref.index >= program.block_count()) {
      return InvalidArgument("E-server-block", "listen_and_serv names block ", ref.index,
                             "; the program has ", program.block_count());
    }
    const bool idle = program.block(ref.index).ops().empty();  // there are more pservers than slices
    if (ref.index == facts.lr_block || idle) continue;
    BlockReader reader(ops, program, ref.index, received);
    PENSTOCK_ASSIGN_OR_RETURN(ServedParam served, reader.Read(facts.trainers));
    if (!served.by_id) merged += served.grads.size();
    facts.params.push_back(std::move(served));
  }
  if (merged == x.size()) return OkStatus();
  return InvalidArgument("E-server-merge", "listen_and_serv receives ", x.size(),
                         " gradients, but its blocks merge ", merged);
}

// Where the transpiler left a plan, that decides how pieces are cut: everything is whole but what it names.
Status ReadChunks(const Program& program, ServerFacts& facts) {
  if (program.meta().plan.empty()) return OkStatus();
  const std::map<std::string, std::int64_t>& chunk_rows = program.meta().chunk_rows;
  for (ServedParam& served : facts.params) {
    if (served.by_id) continue;
    const Dim rows = served.param.shape.rank() == 0 ? 1 : served.param.shape[0];
    const auto cut = chunk_rows.find(served.param.name);
    served.chunk_rows = cut == chunk_rows.end() ? rows : cut->second;
    if (*served.chunk_rows < 1 || *served.chunk_rows > rows) {
      return InvalidArgument("E-server-chunk", "the plan cuts ", served.param, " into chunks of ",
                             *served.chunk_rows, " rows");
    }
    if (*served.chunk_rows == rows || served.elementwise) continue;
    return InvalidArgument("E-server-chunk", "the plan cuts ", served.param, " into chunks of ",
                           *served.chunk_rows, " rows, but block ", served.block, " needs it whole");
  }
  return OkStatus();
}

}  // namespace

Result<ServerFacts> ReadServer(const OpRegistry& ops, const Program& program, const Op& listen_and_serv) {
  PENSTOCK_ASSIGN_OR_RETURN(ServerFacts facts, ReadHead(program, listen_and_serv));
  PENSTOCK_RETURN_IF_ERROR(ReadUpdates(ops, program, listen_and_serv, facts));
  PENSTOCK_RETURN_IF_ERROR(ReadLookups(program, listen_and_serv, facts.params));
  for (const std::string& name : listen_and_serv.GetOr<std::vector<std::string>>("start_values", {})) {
    ServedParam held{.param = {}, .start = true, .block = -1, .grads = {}, .elementwise = true};
    PENSTOCK_ASSIGN_OR_RETURN(held.param, PieceOf(program, 0, name, name));
    facts.params.push_back(std::move(held));
  }
  std::sort(facts.params.begin(), facts.params.end(),
            [](const ServedParam& a, const ServedParam& b) { return a.param.name < b.param.name; });
  PENSTOCK_RETURN_IF_ERROR(RequireOnce(facts.params));
  PENSTOCK_RETURN_IF_ERROR(ReadChunks(program, facts));
  facts.job_facts = program.meta().job_facts;
  return facts;
}

Contract ContractOf(const ServerFacts& facts, int trainer, SparseParams sparse) {
  Contract contract;
  for (const ServedParam& served : facts.params) {
    const bool table = served.rows && sparse == SparseParams::kAsTables;
    if (!served.by_id) (table ? contract.tables : contract.params).push_back(served.param);
    for (const ServedLookup& lookup : served.lookups) {
      contract.tables.push_back({lookup.ids, served.param.dtype, served.param.shape.WithRows(kUnknownDim)});
    }
    if (served.start) {
      if (trainer == 0) contract.starts.push_back(served.param);
      continue;
    }
    contract.grads.push_back({served.grads[static_cast<std::size_t>(trainer)], served.param.dtype,
                              served.param.shape, served.rows});
  }
  SortByName(contract.tables);
  SortByName(contract.grads);
  return contract;
}

}  // namespace penstock::protocol
