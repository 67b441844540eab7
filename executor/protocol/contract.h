// What passes between one trainer and one parameter server, computable from either side's program alone: what
// the roles say (framework/roles), as far as this runtime can run them. No name is ever parsed.
//
//   PENSTOCK_ASSIGN_OR_RETURN(roles::ServerRole role, ReadServer(ops, pserver_program, listen_and_serv));
//   PENSTOCK_ASSIGN_OR_RETURN(TrainerContracts trainer, ReadTrainer(trainer_program));
//   // Of sides that come from one plan:
//   ContractOf(role, 1).Hash() == trainer.contracts.at("127.0.0.1:6174").Hash()
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/roles/piece.h"
#include "framework/roles/server_role.h"
#include "framework/roles/trainer_role.h"

namespace penstock::protocol {

using ContractPiece = roles::PieceType;

// A variable travels as its position here: first the params, then the tables, then the grads.
struct Contract {
  std::vector<ContractPiece> params;  // what the trainer pulls, by name
  std::vector<ContractPiece> starts;  // of trainer 0: params whose initial value it sends, by name
  std::vector<ContractPiece> grads;   // what it pushes each step, by name; none in a startup program
  // Of which it asks for single rows and never pulls the whole, by name; none in a startup program. A table
  // sharded by id is asked for under the names of its requests, without a number of rows.
  std::vector<ContractPiece> tables = {};

  std::string ToText() const;  // a line for each, "param ...", "start ...", "table ..." and "grad ..."
  std::uint64_t Hash() const;
  Contract Startup() const { return {.params = params, .starts = starts, .grads = {}, .tables = {}}; }
  // Positions among the variables; -1 if it is not there.
  int FindParam(std::string_view name) const;
  int FindTable(std::string_view name) const;
  int FindGrad(std::string_view name) const;
  std::size_t variable_count() const { return params.size() + tables.size() + grads.size(); }
  const ContractPiece& Variable(std::size_t position) const;
  bool Starts(std::string_view name) const;
};

void SortByName(std::vector<ContractPiece>& pieces);  // as a contract has them

// What two programs of one process need together. kInvalidArgument E-plan-mismatch: they have one name with
// different types, which `pserver` cannot hold both.
Result<Contract> Join(const Contract& a, const Contract& b, const std::string& pserver);

// The first line in which two contracts differ, as "line 3:  HERE | THERE"; empty if there is none.
std::string FirstDifference(const std::string& here, const std::string& there);

// The role of a server that can run here. Beside what roles::ReadServer refuses, kUnimplemented:
// E-server-mode (a mode that is none), E-contract-policy; and kInvalidArgument E-server-backups (what blocks
// correct for delay is not what the server keeps), E-server-measures (a gradient is measured that updates
// nothing), E-server-exchange (what servers measure is too much for a message).
Result<roles::ServerRole> ReadServer(const OpRegistry& ops, const Program& program,
                                     const Op& listen_and_serv);
// What a trainer's programs say of such a server. Of what is updated by rows they may ask for single rows, or
// for the whole; the server's program does not tell.
enum class SparseParams { kAsTables, kAsParams };
Contract ContractOf(const roles::ServerRole& role, int trainer,
                    SparseParams sparse = SparseParams::kAsTables);

struct TrainerContracts {
  std::optional<int> trainer_id;              // absent if no op says it
  std::map<std::string, Contract> contracts;  // by the server's address
  bool pulls_complete_at_barrier = false;     // a fetch_barrier follows the recvs
  bool trains = false;                        // it sends gradients
  // It trains and has no send_barrier: a step ends where the next one is seen to begin.
  bool ends_steps = false;
  // Gradients are sent after everything is received, so that no recv shows that they have arrived.
  bool pushes_after_pulls = false;
};

// kUnimplemented: E-contract-policy. kInvalidArgument: E-contract-compression (of what is no dense f32
// gradient), E-policy-value, E-text-syntax, E-compression-value (framework/text/policies.h),
// E-contract-epmap, E-contract-shape, E-contract-var (roles::PieceOf), E-contract-trainer (ops disagree about
// who runs them), E-contract-twice.
Result<TrainerContracts> ContractsOf(const roles::TrainerRole& role);
inline Result<TrainerContracts> ReadTrainer(const Program& program) {
  return ContractsOf(roles::ReadTrainer(program));
}

}  // namespace penstock::protocol
