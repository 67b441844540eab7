#include "executor/pserver/contract.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "framework/base/hash.h"
#include "framework/ir/program.h"

namespace penstock {
namespace {

int FindPiece(const std::vector<Piece>& pieces, std::string_view name) {
  const auto at = std::lower_bound(pieces.begin(), pieces.end(), name,
                                   [](const Piece& piece, std::string_view n) { return piece.name < n; });
  return at != pieces.end() && at->name == name ? static_cast<int>(at - pieces.begin()) : -1;
}

void SortByName(std::vector<Piece>& pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.name < b.name; });
}

Status AddPlace(Status status, const Op& op) {
  return op.location().empty() ? std::move(status)
                               : std::move(status).With(StrCat("written at ", op.location()));
}

Result<Piece> PieceOf(const Program& program, int block, const std::string& local,
                      const std::string& remote) {
  const Var* var = program.FindVar(block, local);
  if (var == nullptr || !var->HasShape()) {
    return InvalidArgument("E-contract-var", "communication names ", Quote(local),
                           ", which is not declared as a tensor");
  }
  if (!var->shape().IsKnown() || var->shape().Count() == 0) {
    return InvalidArgument("E-contract-shape", "communication needs the whole shape of ", local,
                           ", which is declared ", var->shape());
  }
  return Piece{remote, var->type->dtype, var->shape()};
}

}  // namespace

std::string Piece::ToString() const { return StrCat(name, " : ", DTypeName(dtype), shape); }

std::string Contract::ToText() const {
  std::string text;
  for (const Piece& piece : params) text += StrCat("param ", piece, "\n");
  for (const Piece& piece : starts) text += StrCat("start ", piece, "\n");
  for (const Piece& piece : grads) text += StrCat("grad ", piece, "\n");
  return text;
}

std::uint64_t Contract::Hash() const { return Fnv1a64(ToText()); }
int Contract::FindParam(std::string_view name) const { return FindPiece(params, name); }
int Contract::FindGrad(std::string_view name) const { return FindPiece(grads, name); }
bool Contract::Starts(std::string_view name) const { return FindPiece(starts, name) >= 0; }

namespace {

Status JoinInto(std::vector<Piece>& pieces, const std::vector<Piece>& more, const std::string& pserver) {
  pieces.insert(pieces.end(), more.begin(), more.end());
  SortByName(pieces);
  const auto same_name = [](const Piece& a, const Piece& b) { return a.name == b.name; };
  for (auto at = pieces.begin(); at + 1 < pieces.end(); ++at) {
    if (!same_name(*at, at[1]) || at->ToString() == at[1].ToString()) continue;
    return InvalidArgument("E-plan-mismatch", "plan: two programs of this process disagree about pserver ",
                           pserver)
        .With(StrCat("first difference:  ", *at, "   |   ", at[1]));
  }
  pieces.erase(std::unique(pieces.begin(), pieces.end(), same_name), pieces.end());
  return OkStatus();
}

}  // namespace

Result<Contract> Join(const Contract& a, const Contract& b, const std::string& pserver) {
  Contract joined = a;
  PENSTOCK_RETURN_IF_ERROR(JoinInto(joined.params, b.params, pserver));
  PENSTOCK_RETURN_IF_ERROR(JoinInto(joined.starts, b.starts, pserver));
  PENSTOCK_RETURN_IF_ERROR(JoinInto(joined.grads, b.grads, pserver));
  return joined;
}

std::string FirstDifference(const std::string& here, const std::string& there) {
  const std::vector<std::string> a = Split(here, '\n');
  const std::vector<std::string> b = Split(there, '\n');
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string_view left = i < a.size() && !a[i].empty() ? std::string_view(a[i]) : "(nothing)";
    const std::string_view right = i < b.size() && !b[i].empty() ? std::string_view(b[i]) : "(nothing)";
    if (left != right) return StrCat("line ", i + 1, ":  ", left, "   |   ", right);
  }
  return "";
}

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

  Status ReadOp(const Op& op) {
    PENSTOCK_ASSIGN_OR_RETURN(const OpDef* def, ops_.Require(op));
    served_.elementwise = served_.elementwise && def->elementwise();
    for (const Slot& slot : op.inputs()) {
      for (const std::string& arg : slot.args) {
        if (!received_.contains(arg)) continue;
        if (std::find(served_.grads.begin(), served_.grads.end(), arg) == served_.grads.end()) {
          served_.grads.push_back(arg);
        }
      }
    }
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

  const OpRegistry& ops_;
  const Program& program_;
  const int block_;
  const std::set<std::string_view>& received_;
  ServedParam served_;
};

}  // namespace

namespace {

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

}  // namespace

Result<ServerFacts> ReadServer(const OpRegistry& ops, const Program& program, const Op& listen_and_serv) {
  ServerFacts facts;
  facts.address = listen_and_serv.GetOr<std::string>("endpoint", "");
  facts.trainers = listen_and_serv.GetOr<std::int32_t>("Fanin", 1);
  if (facts.trainers < 1 || facts.trainers > 1'000'000) {
    return InvalidArgument("E-server-trainers", "listen_and_serv is made for ", facts.trainers, " trainers");
  }
  if (listen_and_serv.GetOr<std::int32_t>("distributed_mode", 0) != 0) {
    return Unimplemented("E-server-mode", "listen_and_serv asks for distributed_mode ",
                         listen_and_serv.GetOr<std::int32_t>("distributed_mode", 0),
                         "; only 0 (sync) runs so far");
  }
  facts.lr_block = listen_and_serv.GetOr<std::int32_t>("lr_decay_block_id", -1);
  const std::vector<std::string>& x = listen_and_serv.Input("X");
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
    merged += served.grads.size();
    facts.params.push_back(std::move(served));
  }
  if (facts.lr_block >= program.block_count()) {
    return InvalidArgument("E-server-block", "lr_decay_block_id is ", facts.lr_block, "; the program has ",
                           program.block_count(), " blocks");
  }
  if (merged != x.size()) {
    return InvalidArgument("E-server-merge", "listen_and_serv receives ", x.size(),
                           " gradients, but its blocks merge ", merged);
  }
  for (const std::string& name : listen_and_serv.GetOr<std::vector<std::string>>("start_values", {})) {
    ServedParam held{.param = {}, .start = true, .block = -1, .grads = {}, .elementwise = true};
    PENSTOCK_ASSIGN_OR_RETURN(held.param, PieceOf(program, 0, name, name));
    facts.params.push_back(std::move(held));
  }
  std::sort(facts.params.begin(), facts.params.end(),
            [](const ServedParam& a, const ServedParam& b) { return a.param.name < b.param.name; });
  PENSTOCK_RETURN_IF_ERROR(RequireOnce(facts.params));
  return facts;
}

Contract ContractOf(const ServerFacts& facts, int trainer) {
  Contract contract;
  for (const ServedParam& served : facts.params) {
    contract.params.push_back(served.param);
    if (served.start) {
      if (trainer == 0) contract.starts.push_back(served.param);
      continue;
    }
    contract.grads.push_back(
        {served.grads[static_cast<std::size_t>(trainer)], served.param.dtype, served.param.shape});
  }
  SortByName(contract.grads);
  return contract;
}

namespace {

class TrainerReader {
 public:
  explicit TrainerReader(const Program& program) : program_(program) {}

  Result<TrainerFacts> Read() {
    const auto policy = program_.meta().policies.find("bn_sync");
    if (policy != program_.meta().policies.end() && policy->second != "none") {
      return Unimplemented("E-contract-policy", "bn_sync ", policy->second,
                           " does not run yet; transpile with bn_sync none");
    }
    for (const OpEntry& entry : program_.main().ops()) {
      Status status = ReadOp(*entry.op);
      if (!status.ok()) return AddPlace(std::move(status), *entry.op);
    }
    for (auto& [address, contract] : facts_.contracts) {
      SortByName(contract.params);
      SortByName(contract.grads);
      TakeStarts(contract);
      const auto same = [](const Piece& a, const Piece& b) {
        return a.name == b.name;
      };  // a variable may be pulled twice
      contract.params.erase(std::unique(contract.params.begin(), contract.params.end(), same),
                            contract.params.end());
      for (std::size_t i = 1; i < contract.grads.size(); ++i) {
        if (contract.grads[i].name != contract.grads[i - 1].name) continue;
        return InvalidArgument("E-contract-twice", "two sends of ", contract.grads[i].name, " to pserver ",
                               address);
      }
    }
    return std::move(facts_);
  }

 private:
  Status ReadOp(const Op& op) {
    if (op.type() == "send") return ReadSend(op);
    if (op.type() == "recv") return ReadRecv(op);
    if (op.type() == "fetch_barrier") facts_.pulls_complete_at_barrier = true;
    if (op.type() == "send_barrier" || op.type() == "fetch_barrier") {
      for (const std::string& address : op.GetOr<std::vector<std::string>>("endpoints", {}))
        facts_.contracts[address];
      return ReadTrainerId(op);
    }
    return OkStatus();
  }

  // What is sent under the name under which it is also fetched is no gradient but a first value.
  static void TakeStarts(Contract& contract) {
    const auto fetched = [&](const Piece& piece) { return contract.FindParam(piece.name) >= 0; };
    std::copy_if(contract.grads.begin(), contract.grads.end(), std::back_inserter(contract.starts), fetched);
    std::erase_if(contract.grads, fetched);
  }

  // `send` is not asked: Fluid leaves 0 in it, whoever sends.
  Status ReadTrainerId(const Op& op) {
    const auto* id = op.Get<std::int32_t>("trainer_id");
    if (id == nullptr) return OkStatus();
    if (facts_.trainer_id.has_value() && *facts_.trainer_id != *id) {
      return InvalidArgument("E-contract-trainer", op.type(), " says trainer_id ", *id,
                             ", an op before it says ", *facts_.trainer_id);
    }
    facts_.trainer_id = *id;
    return OkStatus();
  }

  Status ReadSend(const Op& op) {
    if (!op.GetOr<std::vector<std::string>>("send_varnames", {}).empty() ||
        !op.GetOr<bool>("use_send_handler", true)) {
      return Unimplemented("E-contract-mode",
                           "send through a communicator or as a notification is not built yet");
    }
    return ReadPieces(op, op.Input("X"), op.Input("X"), true);
  }

  Status ReadRecv(const Op& op) {
    if (op.GetOr<std::int32_t>("do_not_run", 0) > 0) return OkStatus();
    const auto remote = op.GetOr<std::vector<std::string>>("varnames", {});
    PENSTOCK_RETURN_IF_ERROR(ReadTrainerId(op));
    return ReadPieces(op, op.Output("Out"), remote.empty() ? op.Output("Out") : remote, false);
  }

  Status ReadPieces(const Op& op, const std::vector<std::string>& local,
                    const std::vector<std::string>& remote, bool push) {
    const auto addresses = op.GetOr<std::vector<std::string>>("epmap", {});
    if (addresses.size() != local.size() || remote.size() != local.size()) {
      return InvalidArgument("E-contract-epmap", op.type(), " has ", local.size(), " variables and ",
                             addresses.size(), " addresses in epmap");
    }
    for (std::size_t i = 0; i < local.size(); ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(Piece piece, PieceOf(program_, 0, local[i], remote[i]));
      Contract& contract = facts_.contracts[addresses[i]];
      auto& pieces = push ? contract.grads : contract.params;
      pieces.push_back(std::move(piece));
    }
    return OkStatus();
  }

  const Program& program_;
  TrainerFacts facts_;
};

}  // namespace

Result<TrainerFacts> ReadTrainer(const Program& program) { return TrainerReader(program).Read(); }

}  // namespace penstock
