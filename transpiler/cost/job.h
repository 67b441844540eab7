// Reads, from the role programs alone (ours or Fluid's), what the processes of a job hold and which messages
// they exchange in a step. All connections follow from the wiring (epmap, sections, optimize blocks, updated
// variables, role pairs, recorded slices), never from a name or a plan.
//
//   PENSTOCK_ASSIGN_OR_RETURN(Job job, ReadJob(AllOps(), {.trainers = {{"trainer.pb", &trainer}},
//                                                         .pservers = {{"pserver_0.pb", &pserver}}}));
//   PENSTOCK_ASSIGN_OR_RETURN(CostReport cost, EstimateCost(job, {}));    // cost.h
//
// Units: bytes and rows are counts of payload alone (tensors and row ids, not names and framing). A message
// is one call by a trainer to a pserver, with its answer.
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

// How a job exchanges gradients and parameters, as far as the cost depends on it.
enum class Exchange {
  kSync,               // barriers; sends and receives are ops of the trainer's program
  kSyncCommunicator,   // barriers; each trainer's communicator sends and receives when its backward pass is
                       // over
  kAsync,              // no barriers; ops of the program
  kAsyncCommunicator,  // no barriers; the communicator runs in the background
  kHalfAsync,          // no barriers between trainers; each waits for its own communicator
  kGeo,                // the communicator sends changes after several steps, in the background
  kAllReduce,          // no pservers: ranks all-reduce
};
std::string_view ExchangeName(Exchange exchange);  // "sync_communicator"

// Rows of one parameter on one pserver.
struct JobPiece {
  std::string name;   // the pserver's variable
  std::string param;  // the whole parameter; the piece's own name if the wiring does not show it
  int pserver = 0;    // position in Job::pservers
  DType dtype = DType::kFp32;
  Shape shape;
  bool sparse = false;      // its gradient is selected rows
  bool elementwise = true;  // its update may be sliced at any row
  std::int64_t value_bytes = 0;
  std::int64_t gradient_bytes =
      0;                         // one per trainer and the merged one; 0 if sparse, because it has only rows
  std::int64_t state_bytes = 0;  // of its optimizer
  std::int64_t rows() const { return shape.rank() == 0 ? 1 : shape[0]; }
};

// A parameter of which trainers send, and usually request, single rows.
struct JobTable {
  std::string param;
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  bool remote = false;  // trainers hold no copy
  // Ids that one trainer looks up in a step: a fixed number plus a number per example. At most as many rows
  // are touched.
  std::int64_t ids = 0;
  std::int64_t ids_per_example = 0;
};

struct JobMessage {
  enum class Kind { kGradient, kParam, kIds, kRows, kCounter, kSendBarrier, kFetchBarrier };
  Kind kind = Kind::kGradient;
  bool up = true;  // its payload goes to the pserver; else it comes from there
  int pserver = 0;
  std::string variable;    // the trainer's
  std::string param;       // the parameter it concerns; empty for counters and barriers
  std::int64_t bytes = 0;  // size in memory, in every message
  // How a dense gradient is compressed; TravellingBytes() is its size on the network.
  Compression compression;
  std::int64_t TravellingBytes() const {
    return compression.none() ? bytes : compression.Bytes(bytes / static_cast<std::int64_t>(sizeof(float)));
  }
  // For a table: its position in Job::tables; -1 otherwise. Each touched row that the pserver holds adds
  // bytes_per_row. The pserver holds rows [row_begin, row_end) of JobTable::rows, or that number of rows if
  // the table is sharded by id.
  int table = -1;
  std::int64_t bytes_per_row = 0;
  std::int64_t row_begin = 0, row_end = 0;
  bool overlaps = false;  // it may travel during the backward pass
};

// One variable that all trainers all-reduce.
struct JobReduction {
  std::string variable;
  std::int64_t bytes = 0;
  bool overlaps = false;  // as in JobMessage
};

// Memory of one process in bytes. Each variable that an op names counts once. Activations, which a pass over
// data fills, depend on the batch; the number is an upper bound that assumes no reuse of buffers.
struct JobMemory {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer_state = 0;
  // Received pieces before they are joined, copies that a communicator keeps, and residuals of compression.
  std::int64_t copies = 0;
  std::int64_t other = 0;  // other persistable variables, and on a pserver temporaries
  std::int64_t activations = 0, activations_per_example = 0;
  int unknown = 0;  // variables that are not counted, because more than one extent depends on the data
  friend bool operator==(const JobMemory&, const JobMemory&) = default;
};

struct JobTrainer {
  std::string file;
  std::vector<JobMessage> messages;      // in program order
  std::vector<JobReduction> reductions;  // in program order
  JobMemory memory;
};

// The measures that one pserver sends to others between merging and updating; the same bytes to each.
struct JobTelling {
  int pserver = 0;
  int peers = 0;           // the number of receivers
  std::int64_t bytes = 0;  // to each of them
};

struct Job {
  Exchange exchange = Exchange::kSync;
  int trainers = 1;
  std::vector<std::string> pservers;      // addresses; none in a collective job
  std::vector<JobPiece> pieces;           // by pserver, in the order of its optimize blocks
  std::vector<JobTable> tables;           // in the order of their first lookup
  std::vector<JobTrainer> present;        // trainers whose program is given; others are like the first
  std::vector<JobMemory> pserver_memory;  // by position in pservers
  std::vector<JobTelling> tellings;       // by pserver; only pservers that send measures
  // The ranks of one host, which reduce among themselves first; 0: all ranks form one ring.
  int ranks_per_host = 0;
  int steps_per_exchange = 1;      // above 1 in geo mode, and if ranks average only after several steps
  std::string plan;                // the plan's text, if the programs carry one
  std::vector<std::string> notes;  // assumptions and caveats for readers of the numbers, a sentence each
};

struct JobProgram {
  std::string file;  // for errors
  const Program* program = nullptr;
};

struct JobPrograms {
  std::vector<JobProgram> trainers, trainer_startups, pservers;
};

// A whole parameter.
struct JobParam {
  std::string name;
  DType dtype = DType::kFp32;
  Shape shape;
  bool sparse = false, elementwise = true;
  int pieces = 0;
};
// The job's whole parameters, ascending by name.
std::vector<JobParam> ParamsOf(const Job& job);

// kInvalidArgument: E-job-trainer (no trainer is given), E-job-pserver (a pserver without listen_and_serv),
// E-job-block, E-job-address (a trainer sends to an address that no pserver or more than one pserver has),
// E-job-epmap, E-policy-value, E-job-var (a sent or updated variable has no declaration with a known shape),
// E-job-alone (neither pservers nor ranks), E-job-ranks, E-job-size (more bytes than can be counted). Cost:
// linear in the programs.
Result<Job> ReadJob(const OpRegistry& ops, const JobPrograms& programs);

}  // namespace penstock::cost
