// Typed views of communication ops: the meaning of each slot and attribute, defined once for check, cost
// model, kernels and runtime.
//
//   if (CommOf(op) == Comm::kSend) {
//     const SendView send(op);
//     PENSTOCK_RETURN_IF_ERROR(send.Validate());
//     for (std::size_t i = 0; i < send.variables().size(); ++i)
//       ... send.variables()[i] goes to send.addresses()[i]
//   }
//
// A view is a reference: it copies no text and allocates nothing; the op must outlive the view and its
// results. An attribute that is absent or of another kind reads as empty unless stated otherwise. Only
// Validate reports errors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/op.h"

namespace penstock {
class Block;
}

namespace penstock::roles {

using Names = std::span<const std::string>;

// An attribute of integers: Fluid writes ints for some ops and longs for others.
class Numbers {
 public:
  Numbers() = default;
  explicit Numbers(const Attr* attr);  // null, or of another kind: empty
  std::size_t size() const { return ints_.size() + longs_.size(); }
  bool empty() const { return size() == 0; }
  std::int64_t operator[](std::size_t i) const { return longs_.empty() ? ints_[i] : longs_[i]; }
  explicit operator std::vector<std::int64_t>() const;

 private:
  std::span<const std::int32_t> ints_;
  std::span<const std::int64_t> longs_;
};

// The role of an op in the communication between trainers and servers.
enum class Comm {
  kNone,
  kSend,
  kRecv,
  kSendBarrier,
  kFetchBarrier,
  kLookup,    // distributed_lookup_table
  kSampler,   // an op that itself reads rows of a range-sliced table on servers (nce), or its gradient
  kPrefetch,  // requests rows of a table sharded by id
  kMergeIds,  // puts the answers in the order of the ids
  kSplit,     // cuts a variable, or rows, or ids, into pieces
  kSave,      // checkpoint_notify
  kServe,     // listen_and_serv
  kExchange,  // exchange_sums
};
Comm CommOf(const Op& op);

// The first (param, grad) pair of an op; empty if it has none.
struct ParamPair {
  std::string_view param, grad;
};
ParamPair PairOf(const Op& op);
// Whether the op itself requests rows of a table from the servers.
bool PrefetchesRows(const Op& op);
// The trainer that runs the op; nullopt if the op has no trainer_id.
std::optional<int> TrainerOf(const Op& op);
// Whether an attribute of the op names servers.
bool NamesServers(const Op& op);

class SendView {
 public:
  explicit SendView(const Op& op) : op_(op) {}
  Names variables() const { return op_.Input("X"); }
  Names addresses() const;   // one per variable, or per message
  Names messages() const;    // the pieces into which the communicator cuts the only variable
  Numbers sections() const;  // rows of these pieces
  bool adds() const;         // the communicator adds waiting gradients instead of averaging them
  bool counts_step() const;  // sends no gradient, but tells the servers that a step is complete
  bool by_communicator() const { return !messages().empty(); }
  // Sends nothing to a server, but tells the trainer's own communicator that rows were touched or that the
  // initial values are complete.
  bool tells_communicator() const;
  // If tells_communicator(): true if the op reports that the initial values are complete; false if it reports
  // that a step has touched rows of the tables messages()[i], given by the ids variables()[i].
  bool tells_start() const {
    return !messages().empty() && !variables().empty() && messages()[0] == variables()[0];
  }
  std::string_view done() const { return op_.OutputName("Out"); }  // control variable
  // The variable for the part of the gradient that compression did not send; empty if there is none.
  std::string_view residual() const { return op_.InputName("Residual"); }
  std::string_view residual_out() const { return op_.OutputName("ResidualOut"); }
  // kInvalidArgument E-contract-epmap: the numbers of addresses and variables differ.
  Status Validate() const;

 private:
  const Op& op_;
};

class RecvView {
 public:
  explicit RecvView(const Op& op) : op_(op) {}
  Names variables() const { return op_.Output("Out"); }
  Names addresses() const;
  Names renamed() const;  // names on the servers; may be empty
  Names remote() const { return renamed().empty() ? variables() : renamed(); }
  Names messages() const;  // as in SendView; Out is the whole
  bool by_communicator() const { return !messages().empty(); }
  bool idle() const;        // does nothing, because the communicator receives
  Status Validate() const;  // E-contract-epmap
  // Whether it runs before the send_barrier of its step, for the values after that. Only a plan
  // (executor/plan) has such an op.
  bool next_version() const;
  static void AskForNext(Op& recv);

 private:
  const Op& op_;
};

// send_barrier, fetch_barrier.
class BarrierView {
 public:
  explicit BarrierView(const Op& op) : op_(op) {}
  Names addresses() const;
  bool half_async() const;  // a barrier among the threads of this trainer; the communicator does the rest
  // Whether the fetch_barrier lets pulls travel past the end of the run. Only a plan (executor/plan) has
  // such an op.
  bool leaves_pulls() const;
  static void LeavePulls(Op& fetch_barrier);

 private:
  const Op& op_;
};

// distributed_lookup_table; nce and its gradient, if servers hold the table.
class LookupView {
 public:
  explicit LookupView(const Op& op);
  const std::string& table() const { return op_.InputName(table_slot_); }
  Names ids() const { return op_.Input("Ids"); }
  Names pieces() const;  // the table's slices, in the order of their rows
  Numbers heights() const;
  Names addresses() const;
  std::int64_t padding() const;      // the id whose row is all zeros; -1: none
  std::string_view version() const;  // the op that the lookup replaces
  Status Validate() const;           // E-contract-epmap

 private:
  const Op& op_;
  std::string_view table_slot_, addresses_attr_;
};

class PrefetchView {
 public:
  explicit PrefetchView(const Op& op) : op_(op) {}
  Names ids() const { return op_.Input("X"); }  // one variable per server; its name is the request's name
  Names rows() const { return op_.Output("Out"); }
  Names addresses() const;
  Status Validate() const;  // E-contract-epmap

 private:
  const Op& op_;
};

// lookup_sparse_table: a server's answer to a prefetch.
class AnswerView {
 public:
  explicit AnswerView(const Op& op) : op_(op) {}
  static bool Is(const Op& op) { return op.type() == "lookup_sparse_table"; }
  const std::string& ids() const { return op_.InputName("Ids"); }
  const std::string& table() const { return op_.InputName("W"); }
  std::int64_t padding() const;  // -1: none

 private:
  const Op& op_;
};

// How a variable is cut into pieces or joined from them.
enum class Cut { kNot, kByRows, kById, kAtRunTime };

class SplitView {
 public:
  explicit SplitView(const Op& op) : op_(op) {}
  Cut cut() const { return by_id() ? Cut::kById : Cut::kByRows; }
  const std::string& whole() const { return op_.InputName(by_id() ? "Ids" : "X"); }
  Names pieces() const { return op_.Output("Out"); }
  Numbers sections() const;  // rows of each piece; empty if cut by id

 private:
  bool by_id() const { return op_.type() == "split_ids"; }
  const Op& op_;
};

// checkpoint_notify.
class SaveView {
 public:
  explicit SaveView(const Op& op) : op_(op) {}
  Names addresses() const;

 private:
  const Op& op_;
};

// exchange_sums: what pservers exchange between merging and updating.
class ExchangeView {
 public:
  explicit ExchangeView(const Op& op) : op_(op) {}
  Names own() const { return op_.Input("X"); }
  Names all() const { return op_.Output("Out"); }
  Names owners() const;  // addresses of the servers that own `all`, one each
  Names peers() const;   // addresses of all servers that take part

 private:
  const Op& op_;
};

// ref_by_trainer_id: the copy of a parameter that belongs to the trainer whose gradient is being applied.
class BackupView {
 public:
  explicit BackupView(const Op& op) : op_(op) {}
  static bool Is(const Op& op) { return op.type() == "ref_by_trainer_id"; }
  Names backups() const { return op_.Input("X"); }  // by trainer
  const std::string& trainer() const { return op_.InputName("TrainerId"); }

 private:
  const Op& op_;
};

// listen_and_serv's distributed_mode.
enum class ServeMode { kSync = 0, kAsync = 1, kHalfAsync = 2, kGeo = 3 };

class ServeView {
 public:
  explicit ServeView(const Op& op) : op_(op) {}
  const std::string& address() const;
  int trainers() const;
  ServeMode mode() const;                            // may be a number that is no ServeMode
  std::optional<int> number() const;                 // its position among the servers, if recorded
  Names received() const { return op_.Input("X"); }  // the gradients' variables
  std::span<const BlockRef> blocks() const;          // in the order in which they run
  int lr_block() const;                              // -1: none
  int save_block() const;                            // -1: none
  Names gradient_blocks() const;                     // "grad:block"
  Names lookup_blocks() const;                       // "ids:block"
  Names sparse_params() const;                       // "grad:param"
  Names start_values() const;                        // held variables, whose values trainer 0 sends
  bool keeps_backups() const;                        // keeps each parameter as each trainer last fetched it
  int threads(std::string_view attr) const;          // one of attr::kThreads

 private:
  const Op& op_;
};
// The listen_and_serv op of block 0, the last if it has several; null if it has none.
const Op* FindServe(const Block& main);

// A text such as "grad:3". It is split at the last colon; nullopt if the text has another form.
struct NamedBlock {
  std::string_view name;
  int block = 0;
};
std::optional<NamedBlock> ParseNamedBlock(std::string_view text);

}  // namespace penstock::roles
