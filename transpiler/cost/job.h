// What a job holds and what its processes say to each other in a step, read from its role programs alone:
// ours or Fluid's. What belongs together follows from the wiring (epmap, sections, optimize blocks, what an
// op updates, role pairs, recorded slices), never from a name or a plan.
//
//   PENSTOCK_ASSIGN_OR_RETURN(Job job, ReadJob(AllOps(), {.trainers = {{"trainer.pb", &trainer}},
//                                                         .pservers = {{"pserver_0.pb", &pserver}}}));
//   PENSTOCK_ASSIGN_OR_RETURN(CostReport cost, EstimateCost(job, {}));    // cost.h
//
// Units: bytes and rows are counts, of payload alone (tensors and row ids, not names and framing). A message
// is one call of a trainer to a pserver, with its answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "framework/op/op_registry.h"
#include "framework/text/compression.h"

namespace penstock::cost {

// How a step's exchange ends, as far as its cost goes.
enum class Exchange {
  kSync,               // barriers; sends and receives are ops of the trainer's program
  kSyncCommunicator,   // barriers; each trainer's communicator sends and receives when its backward pass is
                       // over
  kAsync,              // no barriers; ops of the program
  kAsyncCommunicator,  // no barriers; beside the program's run
  kHalfAsync,          // no barriers between trainers; each waits for its own communicator
  kGeo,                // what has changed, every so many steps, beside the program's run
  kAllReduce,          // no pservers: ranks add up between them
};
std::string_view ExchangeName(Exchange exchange);  // "sync_communicator"

// Rows of one parameter on one pserver.
struct JobPiece {
  std::string name;   // the pserver's variable
  std::string param;  // the whole parameter; the piece's own name if no wiring says more
  int pserver = 0;    // position in Job::pservers
  DType dtype = DType::kFp32;
  Shape shape;
  bool sparse = false;      // its gradient is selected rows
  bool elementwise = true;  // its update may be cut at any row
  std::int64_t value_bytes = 0;
  std::int64_t gradient_bytes =
      0;                         // one a trainer and the merged one; none of a sparse piece, which has rows
  std::int64_t state_bytes = 0;  // of its optimizer
  std::int64_t rows() const { return shape.rank() == 0 ? 1 : shape[0]; }
};

// A parameter of which trainers send, and mostly ask for, single rows.
struct JobTable {
  std::string param;
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  bool remote = false;  // trainers hold no copy
  // Ids that one trainer looks up in a step: fixed, and for each example of the batch. Rows are at most as
  // many.
  std::int64_t ids = 0;
  std::int64_t ids_per_example = 0;
};

struct JobMessage {
  enum class Kind { kGradient, kParam, kIds, kRows, kCounter, kSendBarrier, kFetchBarrier };
  Kind kind = Kind::kGradient;
  bool up = true;  // its payload goes to the pserver; else it comes from there
  int pserver = 0;
  std::string variable;    // the trainer's
  std::string param;       // what it is about; empty for counters and barriers
  std::int64_t bytes = 0;  // in every message
  // Of a dense gradient, whose `bytes` are what it takes in memory: how it travels.
  Compression compression;
  std::int64_t TravellingBytes() const {
    return compression.none() ? bytes : compression.Bytes(bytes / static_cast<std::int64_t>(sizeof(float)));
  }
  // Of a table: its position in Job::tables; each touched row that the pserver holds adds bytes_per_row. The
  // pserver holds rows [row_begin, row_end) of JobTable::rows, or, where the table is sharded by id, that
  // number of rows.
  int table = -1;
  std::int64_t bytes_per_row = 0;
  std::int64_t row_begin = 0, row_end = 0;
  bool overlaps = false;  // the backward pass goes on while it travels
};

// One variable that all trainers add up between them, without pservers.
struct JobReduction {
  std::string variable;
  std::int64_t bytes = 0;
  bool overlaps = false;  // as in JobMessage
};

// Memory of one process, each variable that an op names counted once. What only a pass over data fills
// (activations) depends on the batch and is an upper bound: no buffer is reused.
struct JobMemory {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer_state = 0;
  // Pieces received before they are joined, what a communicator keeps, and what compression keeps back.
  std::int64_t copies = 0;
  std::int64_t other = 0;  // other lasting variables, and on a pserver temporaries
  std::int64_t activations = 0, activations_per_example = 0;
  int unknown = 0;  // variables with more than one extent that only the data gives
  friend bool operator==(const JobMemory&, const JobMemory&) = default;
};

struct JobTrainer {
  std::string file;
  std::vector<JobMessage> messages;      // in program order
  std::vector<JobReduction> reductions;  // in program order
  JobMemory memory;
};

// What one pserver tells others between merging gradients and updating with them: the same to each.
struct JobTelling {
  int pserver = 0;
  int peers = 0;           // how many others it tells
  std::int64_t bytes = 0;  // to each of them
};

struct Job {
  Exchange exchange = Exchange::kSync;
  int trainers = 1;
  std::vector<std::string> pservers;      // addresses; none in a collective job
  std::vector<JobPiece> pieces;           // by pserver, in the order of its optimize blocks
  std::vector<JobTable> tables;           // in the order of their first lookup
  std::vector<JobTrainer> present;        // trainers whose program was given; the others are like the first
  std::vector<JobMemory> pserver_memory;  // by position in pservers
  std::vector<JobTelling> tellings;       // by pserver; none of those that tell nothing
  // Ranks of one host that reduce among themselves first; 0: all ranks form one ring.
  int ranks_per_host = 0;
  int steps_per_exchange = 1;      // more in geo mode, and where ranks average only every so often
  std::string plan;                // the plan's text, if the programs carry one
  std::vector<std::string> notes;  // what a reader of the numbers should know, a sentence each
};

struct JobProgram {
  std::string file;  // for errors
  const Program* program = nullptr;
};

struct JobPrograms {
  std::vector<JobProgram> trainers, trainer_startups, pservers;
};

// The parameters, whole, in the order of their names.
struct JobParam {
  std::string name;
  DType dtype = DType::kFp32;
  Shape shape;
  bool sparse = false, elementwise = true;
  int pieces = 0;
};
std::vector<JobParam> ParamsOf(const Job& job);

// kInvalidArgument: E-job-trainer (none is given), E-job-pserver (a pserver without listen_and_serv),
// E-job-block, E-job-address (a trainer speaks to an address that no pserver has, or two have one),
// E-job-epmap, E-policy-value, E-job-var (what is sent or updated is not declared with a known shape),
// E-job-alone (neither pservers nor ranks), E-job-ranks, E-job-size (more bytes than can be counted). Cost:
// linear in the programs.
Result<Job> ReadJob(const OpRegistry& ops, const JobPrograms& programs);

}  // namespace penstock::cost
