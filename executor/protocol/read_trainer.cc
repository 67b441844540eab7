// A trainer's side of its contracts, read from its program.
#include <algorithm>
#include <iterator>
#include <span>

#include "executor/protocol/contract_pieces.h"

namespace penstock::protocol {
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
      SortByName(contract.tables);
      SortByName(contract.grads);
      TakeStarts(contract);
      const auto same = [](const ContractPiece& a, const ContractPiece& b) { return a.name == b.name; };
      for (std::vector<ContractPiece>* pulled :
           {&contract.params, &contract.tables})  // one may be pulled twice
        pulled->erase(std::unique(pulled->begin(), pulled->end(), same), pulled->end());
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
    if (op.type() == "distributed_lookup_table") return ReadSlices(op, "W", "endpoints");
    if ((op.type() == "nce" || op.type() == "nce_grad") && op.GetOr<bool>("remote_prefetch", false))
      return ReadSlices(op, "Weight", "epmap");
    if (op.type() == "prefetch") return ReadPrefetch(op);
    if (op.type() == "checkpoint_notify") {  // of servers that other programs know
      for (const std::string& address : op.GetOr<std::vector<std::string>>("epmap", {}))
        facts_.contracts[address];
    }
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
    const auto fetched = [&](const ContractPiece& piece) { return contract.FindParam(piece.name) >= 0; };
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
    const ArgList remote = op.GetOr<std::vector<std::string>>("varnames", {});
    PENSTOCK_RETURN_IF_ERROR(ReadTrainerId(op));
    return ReadPieces(op, op.Output("Out"), remote.empty() ? op.Output("Out") : remote, false);
  }

  // Slices of a table that is asked for single rows, from its first row on.
  Status ReadSlices(const Op& op, std::string_view slot, std::string_view servers) {
    const auto names = op.GetOr<std::vector<std::string>>("table_names", {});
    const auto sections = op.GetOr<std::vector<std::int64_t>>("height_sections", {});
    const auto addresses = op.GetOr<std::vector<std::string>>(servers, {});
    if (names.size() != sections.size() || names.size() != addresses.size()) {
      return InvalidArgument("E-contract-epmap", op.type(), " names ", names.size(), " slices, ",
                             sections.size(), " heights and ", addresses.size(), " addresses");
    }
    PENSTOCK_ASSIGN_OR_RETURN(const ContractPiece table,
                              PieceOf(program_, 0, op.InputName(slot), op.InputName(slot)));
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (sections[i] <= 0 || table.shape.rank() == 0) {
        return InvalidArgument("E-contract-shape", op.type(), ": slice ", names[i], " has ", sections[i],
                               " rows");
      }
      facts_.contracts[addresses[i]].tables.push_back(
          {names[i], table.dtype, table.shape.WithRows(sections[i])});
    }
    return OkStatus();
  }

  // Rows of a table that is dealt out by id: what is asked for is called like the ids.
  Status ReadPrefetch(const Op& op) {
    const ArgList& ids = op.Input("X");
    const ArgList& rows = op.Output("Out");
    const auto addresses = op.GetOr<std::vector<std::string>>("epmap", {});
    if (ids.size() != addresses.size() || ids.size() != rows.size()) {
      return InvalidArgument("E-contract-epmap", op.type(), " has ", ids.size(), " variables of ids, ",
                             rows.size(), " of rows and ", addresses.size(), " addresses in epmap");
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const Var* out = program_.FindVar(0, rows[i]);
      const Dim width = out == nullptr || !out->HasShape() || out->shape().rank() == 0
                            ? kUnknownDim
                            : out->shape()[out->shape().rank() - 1];
      if (width <= 0) {
        return InvalidArgument("E-contract-shape", op.type(), ": the declaration of ", rows[i],
                               " must say how wide the rows are");
      }
      facts_.contracts[addresses[i]].tables.push_back({ids[i], out->type->dtype, {kUnknownDim, width}});
    }
    return OkStatus();
  }

  Status ReadPieces(const Op& op, std::span<const std::string> local, std::span<const std::string> remote,
                    bool push) {
    const auto addresses = op.GetOr<std::vector<std::string>>("epmap", {});
    if (addresses.size() != local.size() || remote.size() != local.size()) {
      return InvalidArgument("E-contract-epmap", op.type(), " has ", local.size(), " variables and ",
                             addresses.size(), " addresses in epmap");
    }
    for (std::size_t i = 0; i < local.size(); ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(ContractPiece piece, PieceOf(program_, 0, local[i], remote[i]));
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

}  // namespace penstock::protocol
