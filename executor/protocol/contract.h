// The variables that one trainer and one parameter server exchange. Either side computes them from its own
// program's role (framework/roles), if this runtime supports the role. Names are never parsed.
//
//   PENSTOCK_ASSIGN_OR_RETURN(roles::PserverFacts role, ReadServer(ops, pserver_program, listen_and_serv));
//   PENSTOCK_ASSIGN_OR_RETURN(TrainerContracts trainer, ReadTrainer(trainer_program));
//   // For sides that come from one plan:
//   ContractOf(role, 1).Hash() == trainer.contracts.at("127.0.0.1:6174").Hash()
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/roles/piece.h"
#include "framework/roles/pserver_facts.h"
#include "framework/roles/trainer_facts.h"

namespace penstock::protocol {

using ContractPiece = roles::PieceType;

// A message names a variable by its position: first the params, then the tables, then the grads.
struct Contract {
  std::vector<ContractPiece> params;  // what the trainer pulls, by name
  std::vector<ContractPiece> starts;  // only for trainer 0: params whose initial value it sends, by name
  std::vector<ContractPiece> grads;   // what it pushes each step, by name; none in a startup program
  // Tables from which it requests single rows and which it never pulls whole, by name; none in a startup
  // program. A table sharded by id is listed under the names of its requests, without a number of rows.
  std::vector<ContractPiece> tables = {};

  std::string ToText() const;  // one line per variable: "param ...", "start ...", "table ..." or "grad ..."
  std::uint64_t Hash() const;
  // What a trainer uses before its first step: its startup program alone, or also a program that only
  // computes, such as a test program.
  Contract Startup() const { return {.params = params, .starts = starts, .grads = {}, .tables = {}}; }
  Contract WithoutGrads() const {
    return {.params = params, .starts = starts, .grads = {}, .tables = tables};
  }
  // Positions among the variables; -1 if absent.
  int FindParam(std::string_view name) const;
  int FindTable(std::string_view name) const;
  int FindGrad(std::string_view name) const;
  std::size_t variable_count() const { return params.size() + tables.size() + grads.size(); }
  const ContractPiece& Variable(std::size_t position) const;
  bool Starts(std::string_view name) const;
};

void SortByName(std::vector<ContractPiece>& pieces);  // the order in a contract

// Combines the contracts of two programs of one process with `pserver`. kInvalidArgument E-plan-mismatch:
// they use one name with different types, and a server cannot hold both.
Result<Contract> Join(const Contract& a, const Contract& b, const std::string& pserver);

// The first line in which two contracts differ, as "line 3:  HERE | THERE"; empty if they are equal.
std::string FirstDifference(const std::string& here, const std::string& there);

// Reads a server's role, and checks that this runtime supports it. In addition to the errors of
// roles::ReadServer: kUnimplemented E-server-mode (unknown mode), E-contract-policy. kInvalidArgument
// E-server-backups (the delay correction in the blocks does not match the backups that the server keeps),
// E-server-measures (a measured gradient updates nothing), E-server-exchange (the measures are too large for
// a message).
Result<roles::PserverFacts> ReadServer(const OpRegistry& ops, const Program& program,
                                       const Op& listen_and_serv);
// How a trainer uses the parameters that are updated by rows, each by itself. The server's program does not
// determine it. Of those that are named in neither set it requests single rows.
struct RowUses {
  std::set<std::string, std::less<>> whole;   // pulled whole, like a parameter with a dense gradient
  std::set<std::string, std::less<>> unused;  // neither; parameters and requests (roles::ServedLookup::ids)
  friend bool operator==(const RowUses&, const RowUses&) = default;
};
Contract ContractOf(const roles::PserverFacts& role, int trainer, const RowUses& uses = {});
// Reads the uses from a trainer's contract as text (Contract::ToText). Of a text that was cut, only the lines
// before the cut count.
RowUses RowUsesIn(const roles::PserverFacts& role, std::string_view contract);

struct TrainerContracts {
  std::optional<int> trainer_id;              // nullopt if no op gives it
  std::map<std::string, Contract> contracts;  // by the server's address
  bool pulls_complete_at_barrier = false;     // a fetch_barrier follows the recvs
  bool trains = false;                        // it sends gradients
  // It trains without a send_barrier: a step ends when the next one begins.
  bool ends_steps = false;
  // All gradients are sent after all receives, so no recv shows that they have arrived.
  bool pushes_after_pulls = false;
};

// kUnimplemented: E-contract-policy. kInvalidArgument: E-contract-compression (a compressed gradient is not a
// dense f32 tensor), E-policy-value, E-text-syntax, E-compression-value (framework/text/policies.h),
// E-contract-epmap, E-contract-shape, E-contract-var (roles::PieceOf), E-contract-trainer (ops disagree about
// the trainer), E-contract-twice.
Result<TrainerContracts> ContractsOf(const roles::TrainerFacts& role);
inline Result<TrainerContracts> ReadTrainer(const Program& program) {
  return ContractsOf(roles::ReadTrainer(program));
}

}  // namespace penstock::protocol
