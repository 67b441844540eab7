// The one place that spells the slots and attributes of communication ops. Fluid's spelling, since saved
// programs must run on either side.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/op.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

using NameList = std::vector<std::string>;

// With the attributes that Fluid writes on every op.
Op WithFrame(Op op, Role role, NameList role_pair = {});

// grad -> its slices, by rows. Dense gradients share memory with the whole.
Op MakeSplitRows(const plan::ParamPlacement& param, const std::string& grad, const NameList& pieces);

struct SendSpec {
  NameList pieces;                     // what is sent, one a slice; or the whole, for the communicator to cut
  std::vector<std::int64_t> sections;  // how the communicator cuts it: rows
  NameList messages;                   // and what it calls the slices
  NameList addresses;                  // to whom
  int trainer_id = 0;
  std::string param, grad;  // op_role_var; no parameter: none
  std::string done;         // the control variable; none: nothing waits for it
};
Op MakeSend(const SendSpec& spec);
bool IsSend(const Op& op);
// What the communicator calls what this op sends.
void SetMessages(Op& send, NameList messages);
// Adds `counter` to the variable of that name on every server, which then runs its learning-rate block.
Op MakeStepNotice(const std::string& counter, const NameList& addresses, int trainer_id,
                  const std::string& done);
// Hands variables to the trainer's own communicator under `names`; it knows the servers.
Op MakeNotice(const NameList& vars, const NameList& names, int trainer_id, const std::string& done);
Op MakeSendBarrier(const NameList& after, const NameList& addresses, int trainer_id, const std::string& done);
// Among the threads of one trainer; its communicator does the rest.
Op MakeCommunicatorBarrier(const NameList& after, const NameList& addresses, int trainer_id,
                           const std::string& done);

struct RecvSpec {
  NameList after;     // control variables; none in startup programs
  NameList pieces;    // what arrives; or the whole, put together by the op
  NameList messages;  // of the slices of the whole
  NameList addresses;
  int trainer_id = 0;
  NameList role_pair;  // (param, grad), or none
};
Op MakeRecv(const RecvSpec& spec);
// `after` has no slot at all in startup programs, where the barrier follows nothing.
Op MakeFetchBarrier(const NameList& after, const NameList& addresses, int trainer_id,
                    const NameList& outputs);
Op MakeStartupFetchBarrier(const NameList& addresses, int trainer_id, const std::string& done);

// slices -> the whole.
Op MakeJoinRows(const NameList& pieces, const std::string& whole, Role role);

struct LookupSpec {
  std::string table;
  NameList ids, outputs;
  NameList pieces;     // names of the table's slices
  NameList addresses;  // who has them
  std::vector<std::int64_t> rows;
  std::int64_t padding_idx = -1;
  int trainer_id = 0;
  std::string lookup_type;  // of the ops it stands for
};
Op MakeRemoteLookup(const LookupSpec& spec);
// An op that chooses rows of a table itself, told where they are.
Op WithSlices(const Op& sampler, const LookupSpec& spec);

// ids -> for each pserver those whose rows its shard has, each once. Selected rows are cut likewise.
Op MakeSplitIds(const NameList& ids, const NameList& pieces, Role role);
// Adds up the values of a row that stands there more than once.
Op MakeMergeRows(const std::string& from, const std::string& into);
struct ShardRequestSpec {
  NameList ids, outputs;
  NameList asked, answered;  // one a pserver
  NameList addresses;        // of all pservers
  int trainer_id = 0;
  std::string lookup_type;  // of the ops it stands for
};
Op MakePrefetch(const ShardRequestSpec& spec);
Op MakeMergeIds(const ShardRequestSpec& spec);
// The pserver's side.
Op MakeTableLookup(const std::string& ids, const std::string& table, const std::string& rows,
                   std::int64_t padding_idx);
Op MakeSaveTable(const std::string& table);
// Where the message that asks a pserver to save its tables leaves the path.
inline constexpr std::string_view kTablePathVar = "kLookupTablePath";

// Declares a table without values: it lives on the pservers.
Op MakeFakeInit(const std::string& table, const Shape& shape);

// into = from[0] + from[1] + ..., then into *= factor.
Op MakeSum(const NameList& from, const std::string& into);
Op MakeScale(const std::string& var, float factor);

// Tells the servers at `addresses` the values in `own`, and this one those of all.
struct ExchangeSpec {
  NameList own;
  NameList all, owners;  // with the address of each
  NameList addresses;
};
Op MakeExchangeSums(const ExchangeSpec& spec);

Op MakeAssign(const std::string& from, const std::string& to);
// out = x op y for one of the elementwise ops, equal shapes.
Op MakeElementwise(std::string_view type, const std::string& x, const std::string& y, const std::string& out);
// out = from[the number in trainer_id]
Op MakeRefByTrainerId(const NameList& from, const std::string& trainer_id, const std::string& out);

struct ServeSpec {
  NameList inputs;  // what arrives
  std::string address;
  int pserver = 0;
  int trainers = 1;
  plan::ServerMode mode = plan::ServerMode::kSync;
  int lr_block = -1;
  std::vector<BlockRef> blocks;
  NameList grad_to_block;    // "grad:block"
  NameList sparse_to_param;  // "grad:param"
};
Op MakeListenAndServ(const ServeSpec& spec);
bool IsListenAndServ(const Op& op);
// What the server holds as trainer 0 sends it at the start. An attribute of ours.
void SetStartValues(Op& listen_and_serv, const NameList& names);
// The server keeps a copy of each parameter as each trainer last fetched it.
void SetKeepsBackups(Op& serve);

// What a server does beyond that for the shards it has.
struct TableServeSpec {
  std::vector<BlockRef> blocks;  // updates
  NameList grad_to_block;        // "grad:block"
  NameList ids_to_block;         // "ids:block"
  int save_block = -1;
};
Op WithTables(const Op& listen_and_serv, const TableServeSpec& spec);

}  // namespace penstock::passes
