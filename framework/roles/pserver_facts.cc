#include "framework/roles/pserver_facts.h"

#include <algorithm>
#include <utility>

#include "framework/op/slices.h"
#include "framework/roles/attr_names.h"
#include "framework/roles/server_wiring.h"
#include "framework/roles/trainer_facts.h"
#include "framework/text/policies.h"

namespace penstock::roles {
namespace {

// Reads what an optimize block serves.
class ServedReader {
 public:
  ServedReader(const OpRegistry& ops, const Program& program, const Update& update)
      : ops_(ops), program_(program), update_(update) {}

  // `merges_for`: the number of trainers whose gradients the block must merge; 0: any number.
  Result<ServedParam> Read(int merges_for) {
    const int block = update_.block;
    if (update_.optimizer == nullptr) {
      return InvalidArgument("E-server-optimizer", "block ", block,
                             " of the pserver's program has no optimizer op");
    }
    const std::string param(update_.param);
    PENSTOCK_ASSIGN_OR_RETURN(served_.param, PieceOf(program_, block, param, param));
    if (update_.optimizers.size() > 1) return TwoUpdates(*update_.optimizers[1]);
    served_.block = block;
    served_.by_id = served_.param.rows;
    served_.delta = update_.delta;
    if (update_.merge_block != block) served_.measure_block = update_.merge_block;
    served_.clips = served_.measure_block >= 0;
    PENSTOCK_RETURN_IF_ERROR(ReadGradients());
    if (merges_for > 0 && static_cast<int>(served_.grads.size()) != merges_for) {
      return InvalidArgument("E-server-merge", "block ", block, " merges ", served_.grads.size(),
                             " gradients for ", param, ", but there are ", merges_for, " trainers");
    }
    if (served_.rows && served_.param.shape.rank() == 0) {
      return InvalidArgument("E-server-merge", param, " has no rows, but its gradient does");
    }
    ReadOps();
    const LogicalRows logical = LogicalRowsOf(program_, block, param);
    served_.logical = served_.by_id ? update_.param : logical.whole;  // a table is the whole itself
    if (!served_.by_id) served_.row_begin = logical.row_begin;
    if (served_.by_id) {
      PENSTOCK_RETURN_IF_ERROR(TakeWholeTable());
      served_.row_optimizer = RowOptimizerOf(ops_, program_, block, param, served_.param.dtype);
    }
    return std::move(served_);
  }

 private:
  Status TwoUpdates(const Op& second) const {
    return AddPlace(
        InvalidArgument("E-server-optimizer", "block ", update_.block, " updates both ", update_.param,
                        " and ", second.InputName(FindOptimizerSlots(second, ops_)->param)),
        second);
  }

  // Either all trainers send selected rows, or none does.
  Status ReadGradients() {
    for (const std::string_view name : update_.consumes) {
      const bool rows = IsRows(program_, update_.block, name);
      if (!served_.grads.empty() && rows != served_.rows) {
        return InvalidArgument("E-server-merge", "block ", update_.block, " merges ", served_.grads.front(),
                               " and ", name, ", of which one is selected rows");
      }
      served_.rows = rows;
      if (std::find(served_.grads.begin(), served_.grads.end(), name) == served_.grads.end())
        served_.grads.emplace_back(name);
    }
    return OkStatus();
  }

  void ReadOps() {
    served_.elementwise = !served_.rows && served_.measure_block < 0;
    const auto find = [&](const std::string& name) { return program_.FindVar(update_.block, name); };
    for (const OpEntry& entry : program_.block(update_.block).ops()) {
      served_.elementwise = served_.elementwise && WorksByRows(ops_, *entry.op, served_.param.shape, find);
      if (!BackupView::Is(*entry.op)) continue;
      const BackupView backup(*entry.op);
      served_.backups.assign(backup.backups().begin(), backup.backups().end());
      served_.backup_of = backup.trainer();
    }
  }

  // Trainers send rows of the whole table, but the program declares a shard: takes the whole's shape from the
  // gradient.
  Status TakeWholeTable() {
    served_.param.rows = false;
    if (served_.grads.empty()) return OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(const PieceType grad,
                              PieceOf(program_, update_.block, served_.grads.front(), served_.grads.front()));
    const Shape& shard = served_.param.shape;
    if (grad.shape.rank() == 0 || grad.dtype != served_.param.dtype ||
        grad.shape.WithRows(shard[0]) != shard) {
      return InvalidArgument("E-server-merge", "block ", update_.block, " updates ", served_.param, " by ",
                             grad, ", whose rows are others");
    }
    served_.param.shape = grad.shape;
    return OkStatus();
  }

  const OpRegistry& ops_;
  const Program& program_;
  const Update& update_;
  ServedParam served_;
};

class ServerReader {
 public:
  ServerReader(const OpRegistry& ops, const Program& program, const Op& listen_and_serv)
      : ops_(ops), program_(program), serve_(listen_and_serv) {}

  Result<PserverFacts> Read() {
    PENSTOCK_RETURN_IF_ERROR(ReadHead());
    PENSTOCK_RETURN_IF_ERROR(ReadUpdates());
    PENSTOCK_RETURN_IF_ERROR(ReadLookups());
    for (const std::string& name : serve_.start_values()) {
      ServedParam held{.param = {}, .start = true, .block = -1, .grads = {}, .elementwise = true};
      PENSTOCK_ASSIGN_OR_RETURN(held.param, PieceOf(program_, 0, name, name));
      held.logical = name;
      held.row_begin = 0;
      role_.params.push_back(std::move(held));
    }
    std::sort(role_.params.begin(), role_.params.end(),
              [](const ServedParam& a, const ServedParam& b) { return a.param.name < b.param.name; });
    PENSTOCK_RETURN_IF_ERROR(RequireOnce());
    PENSTOCK_RETURN_IF_ERROR(ReadChunks());
    PENSTOCK_RETURN_IF_ERROR(ReadCompression());
    FindCounters();
    return std::move(role_);
  }

 private:
  // Reads listen_and_serv's attributes, except its blocks.
  Status ReadHead() {
    role_.address = serve_.address();
    role_.trainers = serve_.trainers();
    if (role_.trainers < 1 || role_.trainers > 1'000'000) {
      return InvalidArgument("E-server-trainers", "listen_and_serv is made for ", role_.trainers,
                             " trainers");
    }
    role_.mode = serve_.mode();
    role_.number = serve_.number().value_or(-1);
    role_.keeps_backups = serve_.keeps_backups();
    role_.save_block = serve_.save_block();
    role_.lr_block = serve_.lr_block();
    role_.job_facts = program_.meta().job_facts;
    role_.plan_fingerprint = PlanFingerprintOf(program_);
    for (const auto& [attr, block] :
         {std::pair{attr::kLrBlock, role_.lr_block}, std::pair{attr::kSaveBlock, role_.save_block}}) {
      if (block < program_.block_count()) continue;
      return InvalidArgument("E-server-block", attr, " is ", block, "; the program has ",
                             program_.block_count(), " blocks");
    }
    return OkStatus();
  }

  // The optimize blocks that have ops, without the learning rate's. Fails if an op is unknown.
  Result<std::vector<int>> Blocks() const {
    std::vector<int> blocks;
    for (const BlockRef ref : serve_.blocks()) {
      if (ref.index <= 0 || ref.index >= program_.block_count()) {
        return InvalidArgument("E-server-block", "listen_and_serv names block ", ref.index,
                               "; the program has ", program_.block_count());
      }
      const auto& ops = program_.block(ref.index).ops();  // empty if there are more pservers than slices
      if (ref.index == role_.lr_block || ops.empty()) continue;
      for (const OpEntry& entry : ops) PENSTOCK_RETURN_IF_ERROR(ops_.Require(*entry.op).status());
      blocks.push_back(ref.index);
    }
    return blocks;
  }

  // Whether the block reads a gradient but does not apply it.
  bool Measures(const Update& update) const {
    const auto& ops = program_.block(update.block).ops();
    return update.optimizer == nullptr && !update.consumes.empty() &&
           std::any_of(ops.begin(), ops.end(),
                       [](const OpEntry& entry) { return Has(entry.op->role(), OpRole::kOptimize); });
  }

  // Reads the optimize blocks' updates, and checks that the blocks merge all received gradients.
  Status ReadUpdates() {
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<int> blocks, Blocks());
    const ServerWiring wiring =
        ReadWiring(ops_, program_, role_.mode, blocks, ArrivingAt(ops_, program_, serve_, blocks));
    role_.measure_blocks = wiring.preludes;
    role_.shared_block = wiring.shared_block;
    if (wiring.exchange != nullptr) PENSTOCK_RETURN_IF_ERROR(ReadExchange(ExchangeView(*wiring.exchange)));
    const ViewSet made_for_all = MadeForAll();
    const Names x = serve_.received();
    const ViewSet received(x.begin(), x.end());
    std::size_t merged = 0;
    const auto count = [&](const auto& grads) {
      merged += static_cast<std::size_t>(std::count_if(
          grads.begin(), grads.end(), [&](std::string_view grad) { return received.contains(grad); }));
    };
    for (const Update& update : wiring.updates) {
      if (Measures(update)) {
        role_.measure_blocks.push_back(update.block);
        count(update.consumes);
        continue;
      }
      const bool sync = role_.mode == ServeMode::kSync;
      PENSTOCK_ASSIGN_OR_RETURN(ServedParam served,
                                ServedReader(ops_, program_, update).Read(sync ? role_.trainers : 0));
      if (!served.by_id) count(served.grads);
      served.clips = served.clips || ReadsAny(update.block, made_for_all);
      role_.params.push_back(std::move(served));
    }
    if (merged == x.size()) return OkStatus();
    return InvalidArgument("E-server-merge", "listen_and_serv receives ", x.size(),
                           " gradients, but its blocks merge ", merged);
  }

  // The outputs of the shared block; updates that clip read them.
  ViewSet MadeForAll() const {
    ViewSet made;
    if (role_.shared_block < 0) return made;
    for (const OpEntry& entry : program_.block(role_.shared_block).ops()) {
      for (const Slot& slot : entry.op->outputs()) made.insert(slot.args.begin(), slot.args.end());
    }
    return made;
  }
  bool ReadsAny(int block, const ViewSet& names) const {
    for (const OpEntry& entry : program_.block(block).ops()) {
      for (const Slot& slot : entry.op->inputs()) {
        for (const std::string& name : slot.args) {
          if (names.contains(name)) return true;
        }
      }
    }
    return false;
  }

  // Each server must list its own values in the order in which all servers list them.
  Status ReadExchange(const ExchangeView& exchange) {
    const auto position = [&](const std::string& address) {
      const Names peers = exchange.peers();
      const auto at = std::find(peers.begin(), peers.end(), address);
      return at == peers.end() ? -1 : static_cast<int>(at - peers.begin());
    };
    ServedExchange& out = role_.exchange;
    out.servers.assign(exchange.peers().begin(), exchange.peers().end());
    out.self = position(role_.address);
    if (out.self < 0 || exchange.owners().size() != exchange.all().size()) {
      return InvalidArgument("E-server-exchange", "exchange_sums names ", exchange.owners().size(),
                             " servers of ", exchange.all().size(), " values, among ",
                             exchange.peers().size(), " that take part",
                             out.self < 0 ? ", and this one is none of them" : "");
    }
    std::vector<std::string> own;
    for (std::size_t i = 0; i < exchange.all().size(); ++i) {
      const std::string& name = exchange.all()[i];
      ServedExchange::Value value{.type = {}, .owner = position(exchange.owners()[i])};
      PENSTOCK_ASSIGN_OR_RETURN(value.type, PieceOf(program_, 0, name, name));
      if (value.owner < 0 || value.type.rows || !value.type.shape.IsKnown()) {
        return InvalidArgument("E-server-exchange", "exchange_sums cannot get ", value.type, " from ",
                               exchange.owners()[i]);
      }
      if (value.owner == out.self) own.push_back(name);
      out.values.push_back(std::move(value));
    }
    if (std::equal(own.begin(), own.end(), exchange.own().begin(), exchange.own().end())) return OkStatus();
    return InvalidArgument("E-server-exchange", "exchange_sums tells ", exchange.own().size(),
                           " values of its own, of which other servers expect ", own.size(),
                           ", or another order");
  }

  // For each table sharded by id: the name of the request, and the block that answers it.
  Status ReadLookups() {
    for (const std::string& entry : serve_.lookup_blocks()) {
      const auto named = ParseNamedBlock(entry);
      if (!named || named->block <= 0 || named->block >= program_.block_count()) {
        return InvalidArgument("E-server-block", attr::kPrefetchBlocks, " holds ", Quote(entry),
                               ", which names no block of the program");
      }
      const auto& ops = program_.block(named->block).ops();
      const bool one = ops.size() == 1 && AnswerView::Is(*ops.front().op);
      const std::string table = one ? AnswerView(*ops.front().op).table() : "";
      const auto served =
          std::find_if(role_.params.begin(), role_.params.end(),
                       [&](const ServedParam& param) { return param.by_id && param.param.name == table; });
      if (served == role_.params.end() || AnswerView(*ops.front().op).ids() != named->name) {
        return InvalidArgument("E-server-lookup", "block ", named->block,
                               " of the pserver's program, which answers ", named->name,
                               ", must be one lookup_sparse_table by them, of a table that a block updates");
      }
      served->lookups.push_back({std::string(named->name), AnswerView(*ops.front().op).padding()});
    }
    return OkStatus();
  }

  // Requires that role_.params is sorted by name.
  Status RequireOnce() const {
    for (std::size_t i = 1; i < role_.params.size(); ++i) {
      const ServedParam& a = role_.params[i - 1];
      const ServedParam& b = role_.params[i];
      if (a.param.name != b.param.name) continue;
      if (a.start || b.start) {
        return InvalidArgument("E-server-twice", a.param.name, " is a held parameter that ",
                               a.start && b.start ? "is listed twice" : "is also updated by a block");
      }
      return InvalidArgument("E-server-twice", a.param.name, " is updated by blocks ", a.block, " and ",
                             b.block);
    }
    return OkStatus();
  }

  // If the program has a plan, the plan determines the chunks; a piece that it does not name is one chunk.
  Status ReadChunks() {
    if (program_.meta().plan.empty()) return OkStatus();
    const std::map<std::string, std::int64_t>& chunk_rows = program_.meta().chunk_rows;
    for (ServedParam& served : role_.params) {
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

  // All trainers must compress the gradients of a parameter in the same way.
  Status ReadCompression() {
    PENSTOCK_ASSIGN_OR_RETURN(const JobPolicies policies, ReadPolicies(program_.meta()));
    for (ServedParam& served : role_.params) {
      for (const std::string& grad : served.grads) {
        const Compression how = policies.CompressionOf(grad);
        if (&grad == &served.grads.front()) served.compression = how;
        if (how == served.compression) continue;
        return InvalidArgument("E-server-compression", "the gradients of ", served.param.name,
                               " are compressed in different ways: ", served.grads.front(), " by ",
                               served.compression, ", ", grad, " by ", how);
      }
      const bool dense = !served.rows && !served.by_id && served.param.dtype == DType::kFp32;
      if (served.compression.none() || dense) continue;
      return InvalidArgument("E-server-compression", "the gradients of ", served.param, " are compressed by ",
                             served.compression, ", which needs dense gradients of f32");
    }
    return OkStatus();
  }

  // Finds the step counters: a sum adds one persistable int64 counter per trainer, which messages advance.
  void FindCounters() {
    if (role_.lr_block <= 0) return;
    ViewSet arriving;
    for (const OpEntry& entry : program_.block(role_.lr_block).ops()) {
      const Names counted = entry.op->Input("X");
      if (entry.op->type() != "sum" || static_cast<int>(counted.size()) != role_.trainers) continue;
      const auto counts = [&](const std::string& name) {
        const Var* var = program_.FindVar(role_.lr_block, name);
        return var != nullptr && var->persistable && var->type && var->type->dtype == DType::kInt64;
      };
      if (std::all_of(counted.begin(), counted.end(), counts))
        arriving.insert(counted.begin(), counted.end());
    }
    const std::vector<std::string_view> counters = ReadCounters(program_, role_.lr_block, arriving);
    role_.counters.assign(counters.begin(), counters.end());
  }

  const OpRegistry& ops_;
  const Program& program_;
  const ServeView serve_;
  PserverFacts role_;
};

}  // namespace

std::string ServedExchange::ToText() const {
  std::string text;
  for (const std::string& server : servers) text += StrCat("server ", server, "\n");
  for (const Value& value : values) text += StrCat("sum ", value.type, " of server ", value.owner, "\n");
  return text;
}

std::size_t ServedExchange::BytesOf(int owner) const {
  std::size_t bytes = 0;
  for (const Value& value : values) {
    if (value.owner == owner)
      bytes += static_cast<std::size_t>(value.type.shape.Count()) * SizeOf(value.type.dtype);
  }
  return bytes;
}

Result<PserverFacts> ReadServer(const OpRegistry& ops, const Program& program, const Op& listen_and_serv) {
  return ServerReader(ops, program, listen_and_serv).Read();
}

}  // namespace penstock::roles
