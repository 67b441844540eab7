// The only file that spells the slots and attributes of communication ops. It uses Fluid's names, because
// saved programs must run in Fluid and here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/op.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

using NameList = std::vector<std::string>;

// Adds the attributes that Fluid writes on every op.
Op WithFrame(Op op, OpRole role, NameList role_pair = {});

// Splits a gradient into its slices by rows. Slices of a dense gradient share memory with the whole.
Op MakeSplitRows(const plan::ParamPlacement& param, const std::string& grad, const NameList& pieces);

struct SendSpec {
  NameList pieces;                     // the sent variables, one per slice; or the whole, for a communicator
  std::vector<std::int64_t> sections;  // communicator: rows of each slice
  NameList messages;                   // communicator: names of the slices in messages
  NameList addresses;                  // the receiver of each slice
  int trainer_id = 0;
  std::string param, grad;  // op_role_var; omitted if `param` is empty
  std::string done;         // the control variable; empty: no op waits for the send
};
Op MakeSend(const SendSpec& spec);
bool IsSend(const Op& op);
// Sets the names under which the communicator sends the op's variable.
void SetMessages(Op& send, NameList messages);
// Adds `counter` to the variable of that name on every server. Each server then runs its learning-rate block.
Op MakeStepNotice(const std::string& counter, const NameList& addresses, int trainer_id,
                  const std::string& done);
// Passes variables to the trainer's own communicator under `names`. The op has no addresses: the communicator
// knows the servers.
Op MakeNotice(const NameList& vars, const NameList& names, int trainer_id, const std::string& done);
Op MakeSendBarrier(const NameList& after, const NameList& addresses, int trainer_id, const std::string& done);
// A barrier among the threads of one trainer; its communicator then sends and receives.
Op MakeCommunicatorBarrier(const NameList& after, const NameList& addresses, int trainer_id,
                           const std::string& done);

struct RecvSpec {
  NameList after;     // control variables to wait for; empty in startup programs
  NameList pieces;    // the received variables; or the whole, which the op joins from slices
  NameList messages;  // names of the slices of the whole in messages
  NameList addresses;
  int trainer_id = 0;
  NameList role_pair;  // (param, grad), or empty
};
Op MakeRecv(const RecvSpec& spec);
// A barrier of a startup program waits for no control variable and has no slot for one.
Op MakeFetchBarrier(const NameList& after, const NameList& addresses, int trainer_id,
                    const NameList& outputs);
Op MakeStartupFetchBarrier(const NameList& addresses, int trainer_id, const std::string& done);

// Joins slices to the whole.
Op MakeJoinRows(const NameList& pieces, const std::string& whole, OpRole role);

struct LookupSpec {
  std::string table;
  NameList ids, outputs;
  NameList pieces;     // names of the table's slices
  NameList addresses;  // the pserver of each slice
  std::vector<std::int64_t> rows;
  std::int64_t padding_idx = -1;
  int trainer_id = 0;
  std::string lookup_type;  // type of the ops that it replaces
};
Op MakeRemoteLookup(const LookupSpec& spec);
// Adds the places of the table's slices to an op that selects rows itself.
Op WithSlices(const Op& sampler, const LookupSpec& spec);

// Distributes ids, or selected rows, to the pservers whose shards hold their rows; each id appears once.
Op MakeSplitIds(const NameList& ids, const NameList& pieces, OpRole role);
// Sums the values of each row that occurs more than once.
Op MakeMergeRows(const std::string& from, const std::string& into);
struct ShardRequestSpec {
  NameList ids, outputs;
  NameList asked, answered;  // variables of requested ids and returned rows, one per pserver
  NameList addresses;        // of all pservers
  int trainer_id = 0;
  std::string lookup_type;  // type of the ops that it replaces
};
Op MakePrefetch(const ShardRequestSpec& spec);
Op MakeMergeIds(const ShardRequestSpec& spec);
// The pserver's side of a request.
Op MakeTableLookup(const std::string& ids, const std::string& table, const std::string& rows,
                   std::int64_t padding_idx);
Op MakeSaveTable(const std::string& table);
// The variable that receives the path from the message that asks a pserver to save its tables.
inline constexpr std::string_view kTablePathVar = "kLookupTablePath";

// Declares a table without values, because its rows are on the pservers.
Op MakeFakeInit(const std::string& table, const Shape& shape);

// into = from[0] + from[1] + ..., then into *= factor.
Op MakeSum(const NameList& from, const std::string& into);
Op MakeScale(const std::string& var, float factor);

// Sends the values in `own` to the servers at `addresses`, and receives the values of all servers.
struct ExchangeSpec {
  NameList own;
  NameList all, owners;  // all values, and the address of the server that has each
  NameList addresses;
};
Op MakeExchangeSums(const ExchangeSpec& spec);

Op MakeAssign(const std::string& from, const std::string& to);
// out = x op y for one of the elementwise ops, equal shapes.
Op MakeElementwise(std::string_view type, const std::string& x, const std::string& y, const std::string& out);
// out = from[trainer_id]
Op MakeRefByTrainerId(const NameList& from, const std::string& trainer_id, const std::string& out);

struct ServeSpec {
  NameList inputs;  // arriving variables
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
// The variables that trainer 0 sends at the start and the server holds. The attribute is not Fluid's.
void SetStartValues(Op& listen_and_serv, const NameList& names);
// Makes the server keep, for each trainer, a copy of each parameter as the trainer last fetched it.
void SetKeepsBackups(Op& serve);

// The additional attributes of a server that holds shards of tables.
struct TableServeSpec {
  std::vector<BlockRef> blocks;  // updates
  NameList grad_to_block;        // "grad:block"
  NameList ids_to_block;         // "ids:block"
  int save_block = -1;
};
Op WithTables(const Op& listen_and_serv, const TableServeSpec& spec);

}  // namespace penstock::passes
