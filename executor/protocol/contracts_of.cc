// Makes contracts from roles, and refuses the roles that this runtime does not support.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>

#include "executor/protocol/contract.h"
#include "framework/roles/row_pieces.h"
#include "framework/runtime/transport.h"
#include "framework/text/policies.h"

namespace penstock::protocol {
namespace {

using roles::CommOp;

// Requires that the server keeps backups exactly if the parameter's block reads them. Gradients of rows need
// none: they are applied on arrival.
Status RequireBackups(const roles::PserverFacts& role, const roles::ServedParam& served) {
  if (served.start || (served.rows && served.backups.empty())) return OkStatus();
  if (role.keeps_backups == served.backups.empty()) {
    return InvalidArgument("E-server-backups", "listen_and_serv has dc_asgd=", role.keeps_backups,
                           ", but block ", served.block,
                           served.backups.empty() ? " does not correct" : " corrects", " the gradient of ",
                           served.param.name, " for delay");
  }
  if (served.backups.empty()) return OkStatus();
  if (role.mode == roles::ServeMode::kSync) {
    return InvalidArgument(
        "E-server-backups", "block ", served.block, " corrects a gradient of ", served.param.name,
        " for one trainer's delay, but in distributed_mode 0 an update ", "is of the gradients of all");
  }
  if (static_cast<int>(served.backups.size()) == role.trainers) return OkStatus();
  return InvalidArgument("E-server-backups", "block ", served.block, " has copies of ", served.param.name,
                         " for ", served.backups.size(), " trainers, but there are ", role.trainers);
}

// Requires that each measured gradient also updates a parameter.
Status RequireMeasuresOfUpdates(const roles::PserverFacts& role) {
  std::set<int> blocks(role.measure_blocks.begin(), role.measure_blocks.end());
  blocks.erase(role.shared_block);
  for (const roles::ServedParam& served : role.params) blocks.erase(served.measure_block);
  if (!blocks.empty()) {
    return InvalidArgument("E-server-measures", "block ", *blocks.begin(),
                           " of the pserver's program measures a gradient that updates nothing");
  }
  for (int server = 0; server < static_cast<int>(role.exchange.servers.size()); ++server) {
    const std::size_t bytes = role.exchange.BytesOf(server);
    if (bytes <= kMaxBodyBytes) continue;
    return InvalidArgument("E-server-exchange", "pserver ",
                           role.exchange.servers[static_cast<std::size_t>(server)], " would tell ", bytes,
                           " bytes of what it measures; a message has at most ", kMaxBodyBytes);
  }
  return OkStatus();
}

// The only function that decides which servers this runtime supports.
Status RequireServable(const roles::PserverFacts& role) {
  const auto mode = static_cast<int>(role.mode);
  if (mode < 0 || role.mode > roles::ServeMode::kGeo) {
    return Unimplemented("E-server-mode", "listen_and_serv asks for distributed_mode ", mode,
                         "; there are 0 (sync), 1 and 2 (async) and 3 (geo)");
  }
  for (const roles::ServedParam& served : role.params) {
    PENSTOCK_RETURN_IF_ERROR(RequireBackups(role, served));
    if (role.mode == roles::ServeMode::kSync || served.grads.size() <= 1) continue;
    return InvalidArgument("E-server-merge", "block ", served.block, " merges ", served.grads.size(),
                           " gradients for ", served.param.name, ", but in distributed_mode ", mode,
                           " each gradient is an update of its own");
  }
  return RequireMeasuresOfUpdates(role);
}

// `sync` is nullopt for a startup program, which is the same in every mode.
Status RequirePolicies(const JobPolicies& policies, std::optional<bool> sync) {
  if (policies.staleness && sync == true) {
    return Unimplemented("E-contract-policy", kStalenessPolicy, " does not run in synchronous programs; ",
                         "transpile without it, or with sync_mode=false");
  }
  if (policies.backup_trainers > 0 && sync == false) {
    return Unimplemented("E-contract-policy", kBackupTrainersPolicy, " does not run in asynchronous ",
                         "programs; transpile without it, or with sync_mode=true");
  }
  return OkStatus();
}

class ContractMaker {
 public:
  explicit ContractMaker(const roles::TrainerFacts& role) : program_(*role.program) {}

  Status Add(const CommOp& one) {
    switch (one.kind) {
      case CommOp::Kind::kTold:  // the communicator makes a program of its own for it
        return OkStatus();
      case CommOp::Kind::kSend:
      case CommOp::Kind::kStep:
        last_send_ = one.position;
        return AddSend(one);
      case CommOp::Kind::kRecv:
        last_recv_ = one.position;
        return one.idle && !one.by_communicator ? OkStatus() : AddRecv(one);
      case CommOp::Kind::kLookup:
      case CommOp::Kind::kSampler:
        return AddSlices(one);
      case CommOp::Kind::kPrefetch:
        return AddPrefetch(one);
      case CommOp::Kind::kAnswers:
        return OkStatus();
      case CommOp::Kind::kSave:  // goes to servers that only other programs may use
        AddServers(one);
        return OkStatus();
      case CommOp::Kind::kSendBarrier:
        ends_otherwise_ = true;
        [[fallthrough]];
      case CommOp::Kind::kFetchBarrier:
        AddServers(one);
        return CheckTrainer(*one.op);
    }
    return OkStatus();
  }

  Result<TrainerContracts> Take(const JobPolicies& policies) {
    for (auto& [address, contract] : out_.contracts) {
      SortByName(contract.params);
      SortByName(contract.tables);
      SortByName(contract.grads);
      TakeStarts(contract);
      PENSTOCK_RETURN_IF_ERROR(Compress(policies, contract));
      out_.trains |= !contract.grads.empty();
      const auto same = [](const ContractPiece& a, const ContractPiece& b) { return a.name == b.name; };
      for (std::vector<ContractPiece>* pulled :
           {&contract.params, &contract.tables})  // a program may pull a variable twice
        pulled->erase(std::unique(pulled->begin(), pulled->end(), same), pulled->end());
      const auto twice = std::adjacent_find(contract.grads.begin(), contract.grads.end(), same);
      if (twice == contract.grads.end()) continue;
      return InvalidArgument("E-contract-twice", "two sends of ", twice->name, " to pserver ", address);
    }
    out_.ends_steps = out_.trains && !ends_otherwise_;
    out_.pushes_after_pulls = out_.trains && last_send_ > last_recv_;
    return std::move(out_);
  }

 private:
  // A variable that is sent and fetched under one name is an initial value, not a gradient.
  static void TakeStarts(Contract& contract) {
    const auto fetched = [&](const ContractPiece& piece) { return contract.FindParam(piece.name) >= 0; };
    std::copy_if(contract.grads.begin(), contract.grads.end(), std::back_inserter(contract.starts), fetched);
    std::erase_if(contract.grads, fetched);
  }

  static Status Compress(const JobPolicies& policies, Contract& contract) {
    for (ContractPiece& grad : contract.grads) {
      const Compression how = policies.CompressionOf(grad.name);
      if (!how.none() && (grad.rows || grad.dtype != DType::kFp32)) {
        return InvalidArgument("E-contract-compression", grad, " is compressed by ", how,
                               ", which needs a dense gradient of f32");
      }
      grad.compression = how;
    }
    return OkStatus();
  }

  void AddServers(const CommOp& one) {
    for (const roles::Piece& piece : one.pieces) out_.contracts[std::string(piece.pserver)];
  }

  // Not called for `send`: Fluid writes trainer 0 there in every trainer's program.
  Status CheckTrainer(const Op& op) {
    const std::optional<int> id = roles::TrainerOf(op);
    if (!id) return OkStatus();
    if (out_.trainer_id.has_value() && *out_.trainer_id != *id) {
      return InvalidArgument("E-contract-trainer", op.type(), " says trainer_id ", *id,
                             ", an op before it says ", *out_.trainer_id);
    }
    out_.trainer_id = id;
    return OkStatus();
  }

  Status AddSend(const CommOp& one) {
    if (one.kind == CommOp::Kind::kStep) {
      AddServers(one);
      return OkStatus();
    }
    if (one.by_communicator) {
      ends_otherwise_ = true;
      return AddRows(*one.op, &Contract::grads);
    }
    const roles::SendView send(*one.op);
    PENSTOCK_RETURN_IF_ERROR(send.Validate());
    return AddPieces(send.variables(), send.variables(), send.addresses(), &Contract::grads);
  }

  Status AddRecv(const CommOp& one) {
    PENSTOCK_RETURN_IF_ERROR(CheckTrainer(*one.op));
    if (one.by_communicator) return AddRows(*one.op, &Contract::params);
    const roles::RecvView recv(*one.op);
    PENSTOCK_RETURN_IF_ERROR(recv.Validate());
    return AddPieces(recv.variables(), recv.remote(), recv.addresses(), &Contract::params);
  }

  Status AddPieces(roles::Names local, roles::Names remote, roles::Names addresses,
                   std::vector<ContractPiece> Contract::*pieces) {
    for (std::size_t i = 0; i < local.size(); ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(ContractPiece piece, roles::PieceOf(program_, 0, local[i], remote[i]));
      (out_.contracts[addresses[i]].*pieces).push_back(std::move(piece));
    }
    return OkStatus();
  }

  // Adds the row pieces of a variable that the communicator sends or receives.
  Status AddRows(const Op& op, std::vector<ContractPiece> Contract::*pieces) {
    PENSTOCK_ASSIGN_OR_RETURN(std::vector<roles::RowPiece> cut, roles::RowPiecesOf(program_, op));
    for (roles::RowPiece& piece : cut)
      (out_.contracts[piece.pserver].*pieces).push_back(std::move(piece.type));
    return OkStatus();
  }

  // Adds the slices of a table from which single rows are requested, in the order of their rows.
  Status AddSlices(const CommOp& one) {
    const roles::LookupView lookup(*one.op);
    PENSTOCK_RETURN_IF_ERROR(lookup.Validate());
    PENSTOCK_ASSIGN_OR_RETURN(const ContractPiece table,
                              roles::PieceOf(program_, 0, lookup.table(), lookup.table()));
    for (const roles::Piece& slice : one.pieces) {
      if (slice.rows <= 0 || table.shape.rank() == 0) {
        return InvalidArgument("E-contract-shape", one.op->type(), ": slice ", slice.remote, " has ",
                               slice.rows, " rows");
      }
      out_.contracts[std::string(slice.pserver)].tables.push_back(
          {std::string(slice.remote), table.dtype, table.shape.WithRows(slice.rows)});
    }
    return OkStatus();
  }

  // Adds a table sharded by id, under the names of the ids' variables.
  Status AddPrefetch(const CommOp& one) {
    const roles::PrefetchView prefetch(*one.op);
    PENSTOCK_RETURN_IF_ERROR(prefetch.Validate());
    for (std::size_t i = 0; i < prefetch.ids().size(); ++i) {
      const std::string& rows = prefetch.rows()[i];
      const Var* out = program_.FindVar(0, rows);
      const Dim width = out == nullptr || !out->HasShape() || out->shape().rank() == 0
                            ? kUnknownDim
                            : out->shape()[out->shape().rank() - 1];
      if (width <= 0) {
        return InvalidArgument("E-contract-shape", one.op->type(), ": the declaration of ", rows,
                               " must say how wide the rows are");
      }
      out_.contracts[prefetch.addresses()[i]].tables.push_back(
          {prefetch.ids()[i], out->type->dtype, {kUnknownDim, width}});
    }
    return OkStatus();
  }

  const Program& program_;
  TrainerContracts out_;
  int last_send_ = -1, last_recv_ = -1;  // positions
  bool ends_otherwise_ = false;          // a send_barrier or the communicator ends steps
};

}  // namespace

Result<roles::PserverFacts> ReadServer(const OpRegistry& ops, const Program& program,
                                       const Op& listen_and_serv) {
  PENSTOCK_ASSIGN_OR_RETURN(roles::PserverFacts role, roles::ReadServer(ops, program, listen_and_serv));
  PENSTOCK_RETURN_IF_ERROR(RequireServable(role));
  PENSTOCK_ASSIGN_OR_RETURN(const JobPolicies policies, ReadPolicies(program.meta()));
  PENSTOCK_RETURN_IF_ERROR(RequirePolicies(policies, role.mode == roles::ServeMode::kSync));
  return role;
}

namespace {

// How a contract lists a request for rows of a table sharded by id.
ContractPiece RequestOf(const roles::ServedParam& served, const roles::ServedLookup& lookup) {
  return {lookup.ids, served.param.dtype, served.param.shape.WithRows(kUnknownDim)};
}

}  // namespace

RowUses RowUsesIn(const roles::PserverFacts& role, std::string_view contract) {
  const std::vector<std::string> split = Split(contract, '\n');
  const std::set<std::string_view> lines(split.begin(), split.end());
  const auto lists = [&](std::string_view kind, const ContractPiece& piece) {
    return lines.contains(StrCat(kind, " ", piece));
  };
  RowUses uses;
  for (const roles::ServedParam& served : role.params) {
    if (served.rows && !served.by_id) {
      if (lists("param", served.param)) {
        uses.whole.insert(served.param.name);
      } else if (!lists("table", served.param)) {
        uses.unused.insert(served.param.name);
      }
    }
    for (const roles::ServedLookup& lookup : served.lookups) {
      if (!lists("table", RequestOf(served, lookup))) uses.unused.insert(lookup.ids);
    }
  }
  return uses;
}

Contract ContractOf(const roles::PserverFacts& role, int trainer, const RowUses& uses) {
  Contract contract;
  for (const roles::ServedParam& served : role.params) {
    const bool whole = !served.rows || uses.whole.contains(served.param.name);
    if (!served.by_id && !(served.rows && uses.unused.contains(served.param.name)))
      (whole ? contract.params : contract.tables).push_back(served.param);
    for (const roles::ServedLookup& lookup : served.lookups) {
      if (!uses.unused.contains(lookup.ids)) contract.tables.push_back(RequestOf(served, lookup));
    }
    if (served.start) {
      if (trainer == 0) contract.starts.push_back(served.param);
      continue;
    }
    contract.grads.push_back({served.GradientOf(trainer), served.param.dtype, served.param.shape, served.rows,
                              served.compression});
  }
  SortByName(contract.tables);
  SortByName(contract.grads);
  return contract;
}

Result<TrainerContracts> ContractsOf(const roles::TrainerFacts& role) {
  if (role.bn_sync != "none") {
    return Unimplemented("E-contract-policy", "bn_sync ", role.bn_sync,
                         " does not run yet; transpile with bn_sync none");
  }
  ContractMaker maker(role);
  for (const CommOp& one : role.ops) {
    Status status = maker.Add(one);
    if (!status.ok()) return roles::AddPlace(std::move(status), *one.op);
  }
  PENSTOCK_ASSIGN_OR_RETURN(const JobPolicies policies, ReadPolicies(role.program->meta()));
  PENSTOCK_ASSIGN_OR_RETURN(TrainerContracts out, maker.Take(policies));
  if (!out.trainer_id) out.trainer_id = role.trainer_id;  // from its lookups
  const std::optional<bool> sync = out.trains ? std::optional(!out.ends_steps) : std::nullopt;
  PENSTOCK_RETURN_IF_ERROR(RequirePolicies(policies, sync));
  out.pulls_complete_at_barrier = role.pulls_end_at_barrier;
  return out;
}

}  // namespace penstock::protocol
