// What passes between one trainer and one parameter server, read from either side's program alone, and what a
// server serves, recovered from the wiring of its program: which gradients belong together and in which order
// (the inputs of the op that merges them), which block updates what, and how far it may be cut into chunks.
// No name is ever parsed.
//
//   PENSTOCK_ASSIGN_OR_RETURN(ServerFacts facts, ReadServer(ops, pserver_program, listen_and_serv));
//   PENSTOCK_ASSIGN_OR_RETURN(TrainerFacts trainer, ReadTrainer(trainer_program));
//   // Of sides that come from one plan:
//   ContractOf(facts, 1).Hash() == trainer.contracts.at("127.0.0.1:6174").Hash()
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/op/op_registry.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace penstock {
class Program;
}

namespace penstock::protocol {

struct ContractPiece {
  std::string name;
  DType dtype = DType::kFp32;
  Shape shape;
  bool rows = false;             // travels as some rows of it: a sparse gradient
  std::string ToString() const;  // "w : f32[7, 2048]", "w@GRAD : rows<f32[7, 2048]>"
};

// A variable travels as its position here: first the params, then the tables, then the grads.
struct Contract {
  std::vector<ContractPiece> params;  // what the trainer pulls, by name
  std::vector<ContractPiece> starts;  // those of the params whose first value it sends, by name; trainer 0's
  std::vector<ContractPiece> grads;   // what it pushes each step, by name; none in a start-up program
  // Of which it asks for single rows and never pulls the whole, by name; none in a start-up program. A table
  // that is dealt out by id is asked for under the names of its requests, without a number of rows.
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

// What two programs of one process need together. kInvalidArgument E-plan-mismatch: they have one name with
// different types, which `pserver` cannot hold both.
Result<Contract> Join(const Contract& a, const Contract& b, const std::string& pserver);

// The first line in which two contracts differ, as "line 3:  HERE | THERE"; empty if there is none.
std::string FirstDifference(const std::string& here, const std::string& there);

// A way to ask for rows of a table that is dealt out by id.
struct ServedLookup {
  std::string ids;            // the name of the question
  std::int64_t padding = -1;  // the id that stands for no row; -1: none
};

// One parameter piece on a server, or a variable that it only holds: trainer 0's first value, for all to
// pull.
struct ServedParam {
  ContractPiece param;
  bool start = false;              // held only: no block, no gradients
  int block = 0;                   // the optimize block that updates it
  std::vector<std::string> grads;  // by trainer: the order in which the merge adds them
  bool elementwise = false;        // every op of the block: it may run on a row range
  bool rows = false;               // the gradients are rows: then it is not cut into chunks
  // It is a shard of a table that is dealt out by id: `param` is the whole table, of which some rows live
  // here.
  bool by_id = false;
  std::vector<ServedLookup> lookups = {};  // of by_id
  // Rows that are merged, updated and versioned together, as the program's plan says. Nothing: it has no
  // plan.
  std::optional<Dim> chunk_rows = {};
};

struct ServerFacts {
  std::string address;
  int trainers = 0;
  int save_block = -1;              // saves tables that are dealt out by id; -1: there are none
  int lr_block = -1;                // runs once a step, before the optimize blocks; -1: none
  std::vector<ServedParam> params;  // by name
  std::string job_facts;            // what its program says of the job; empty: nothing
};

Result<ServerFacts> ReadServer(const OpRegistry& ops, const Program& program, const Op& listen_and_serv);
// What a trainer's programs say of such a server. Of what is updated by rows they may ask for single rows, or
// for the whole; the server's program does not tell.
enum class SparseParams { kAsTables, kAsParams };
Contract ContractOf(const ServerFacts& facts, int trainer, SparseParams sparse = SparseParams::kAsTables);

struct TrainerFacts {
  std::optional<int> trainer_id;              // absent if no op says it
  std::map<std::string, Contract> contracts;  // by the server's address
  bool pulls_complete_at_barrier = false;     // a fetch_barrier follows the recvs
};

Result<TrainerFacts> ReadTrainer(const Program& program);

}  // namespace penstock::protocol
