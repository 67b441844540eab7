// The facts about each role that the rules need, read once from its programs. Variable names are looked up,
// never parsed: which gradient belongs to which parameter follows from who sends what to whom. All names are
// views of strings in the programs, which must outlive the facts.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/base/view_map.h"
#include "framework/op/op_registry.h"
#include "framework/roles/server_wiring.h"
#include "framework/roles/trainer_facts.h"
#include "transpiler/check/check.h"

namespace penstock::check {

// A pserver's address and a variable there. Both are views of the programs and the facts, which outlive the
// containers that rules build from them.
using Place = std::pair<std::string_view, std::string_view>;
struct PlaceHash {
  std::uint32_t operator()(const Place& place) const {
    return FlatHash(place.first) * 31 + FlatHash(place.second);
  }
};
using PlaceSet = FlatSet<Place, PlaceHash>;
template <typename Value>
using PlaceMap = FlatMap<Place, Value, PlaceHash>;

using roles::Cut;
using roles::ServeMode;

struct PserverFacts;
struct UpdateBlock;

// A piece of a message, with the declarations of both sides.
struct Piece : roles::Piece {
  const Var* here = nullptr;            // `local` as block 0 declares it, null if it does not
  const PserverFacts* to = nullptr;     // null: no pserver of the set has that address
  const Var* there = nullptr;           // `remote` as its block 0 declares it
  const UpdateBlock* reader = nullptr;  // for a sent piece: the block that reads it there, null if none does
};

// One send or recv.
struct Transfer {
  const Op* op = nullptr;
  int position = 0;        // of the op in block 0
  std::string_view param;  // of the op's (param, grad) pair; empty if it has none
  std::string_view whole;  // the variable that the pieces are cut from or joined to
  Cut cut = Cut::kNot;
  const Op* cut_op = nullptr;  // the op that splits or joins; null if no op does
  int cut_position = 0;
  bool counts_steps = false;  // carries no gradient: tells the pservers that the trainer finished a step
  std::vector<Piece> pieces;
};

struct Barrier {
  roles::Names pservers;
  const Op* op = nullptr;
  int position = 0;
};

// A request for rows of a table that pservers hold, made in every step.
struct Lookup {
  const Op* op = nullptr;  // sends the request
  int position = 0;
  std::string_view table;     // the trainer's variable; empty if the op does not name it
  Cut cut = Cut::kByRows;     // or kById
  std::vector<Piece> pieces;  // kByRows: slices of the table; kById: the variables of the ids
  const Op* split = nullptr;  // kById: shards the ids
  const Op* merge = nullptr;  // kById: joins the rows
};

struct TrainerFacts {
  const RoleProgram* file = nullptr;
  const RoleProgram* startup = nullptr;  // null if the set does not contain it
  int trainer_id = 0;
  std::vector<Transfer> sends, recvs, startup_recvs;
  std::vector<Barrier> send_barriers, fetch_barriers, startup_barriers;
  std::vector<Lookup> lookups;
  ViewSet remote_tables;                    // parameters that an op reads from the pservers directly
  ViewMap<const Op*> gradients;             // param -> the backward op that has it in its pair
  std::set<std::string_view> updated_here;  // parameters with an optimizer op on the trainer
  bool by_communicator = false;             // ops only name the variables; a background thread sends them
  std::vector<Transfer> tells_ids;          // geo: sends that report the touched rows of tables

  // The send of the parameter's gradient and the recv of the parameter; null if there is none.
  const Transfer* FindSend(std::string_view param) const;
  const Transfer* FindRecv(std::string_view param) const;
  ViewMap<std::size_t> send_of, recv_of;  // positions in sends, recvs
};

// One optimize block of a pserver.
struct UpdateBlock : roles::Update {
  const Var* param_var = nullptr;  // the declarations that its block sees, null if there are none
  const Var* grad_var = nullptr;
  bool by_id = false;  // the shard of a table sharded by id
  // A shard whose block consists of the sum of the arriving gradients and the optimizer only, as in Fluid.
  bool plain = false;
  // In the order in which they run.
  std::vector<int> blocks() const {
    return merge_block == block ? std::vector<int>{block} : std::vector<int>{merge_block, block};
  }
  const Op* anchor(const Op* serve) const { return optimizer != nullptr ? optimizer : serve; }
};

struct PserverFacts {
  const RoleProgram* file = nullptr;
  const RoleProgram* startup = nullptr;
  const Op* serve = nullptr;
  roles::ServeView said() const { return roles::ServeView(*serve); }
  std::string address;
  int trainers = 0;
  ServeMode mode = ServeMode::kSync;
  roles::Names received;             // variables that listen_and_serv lists
  std::span<const BlockRef> blocks;  // blocks that it lists
  std::vector<UpdateBlock> updates;
  int lr_block = -1, checkpoint_block = -1;
  int shared_block = -1;         // computes values that depend on all gradients, for all updates; -1: none
  const Op* exchange = nullptr;  // sends the measures made here to other pservers; null if none does
  std::map<std::string, int, std::less<>> prefetch_blocks;  // variable of the ids -> block
  ViewMap<std::size_t> consumer;                            // arriving variable -> position in updates
  ViewMap<std::size_t> updated_by;                          // param piece -> position in updates
  std::set<std::string, std::less<>> counters;              // arriving step counters of the lr block

  const UpdateBlock* UpdateOf(std::string_view piece) const;   // null if it is not updated here
  const UpdateBlock* ConsumerOf(std::string_view name) const;  // null if no block reads it
};

struct RoleFacts {
  std::vector<TrainerFacts> trainers;
  std::vector<PserverFacts> pservers;
  std::map<std::string, std::size_t, std::less<>> by_address;
  const PserverFacts* FindPserver(std::string_view address) const;
  bool sync() const;  // every pserver is in mode sync, and no trainer uses a communicator
  bool geo() const;
  // Whether trainers all-reduce: always without pservers; with pservers, if their programs contain such ops
  // or rings.
  bool ranks() const;
  // The pservers are in mode sync, but no trainer has a send barrier and no block merges.
  bool async_called_sync() const;
};

// Appends a finding for each program so broken that no facts can be read (a pserver without listen_and_serv).
RoleFacts ReadFacts(const RoleFiles& roles, const OpRegistry& ops, ThreadPool* threads,
                    std::vector<Finding>& findings);
TrainerFacts ReadTrainer(const RoleFiles& roles, std::size_t index, const OpRegistry& ops);
// A piece that some trainer sends.
struct Sent {
  const Piece* piece = nullptr;
  Cut cut = Cut::kNot;
};
using SentTo = ViewMap<std::vector<Sent>>;  // by the address of the pserver
std::optional<PserverFacts> ReadPserver(const RoleFiles& roles, std::size_t index, const OpRegistry& ops,
                                        const SentTo& sent, std::vector<Finding>& findings);

// A name as one block sees it.
struct InBlock {
  int block = 0;
  std::string_view name;
};
// Program::FindVar of each name, faster than one by one.
std::vector<const Var*> FindVars(const Program& program, std::span<const InBlock> names);

using roles::FindOptimizerSlots;

// Calls `visit` with each (param, grad) pair of op_role_var, as views of the program.
template <typename Visit>
void ForEachPair(const Op& op, const Visit& visit) {
  const auto* names = op.Get<std::vector<std::string>>(kRoleVarAttr);
  for (std::size_t i = 0; names != nullptr && i + 1 < names->size(); i += 2)
    visit(std::string_view((*names)[i]), std::string_view((*names)[i + 1]));
}

const std::vector<std::string>& StringsOf(const Op& op, std::string_view attr);  // empty if absent
std::vector<std::int64_t> LongsOf(const Op& op, std::string_view attr);          // also int attributes

std::string Shortened(std::string line);  // replaces the middle of a very long line by " ... "
Finding MakeFinding(Severity severity, std::string id, const RoleProgram& file, std::string message,
                    const Op* op = nullptr);

// The rules append to this.
class Findings {
 public:
  explicit Findings(std::vector<Finding>& out) : out_(out) {}
  void Error(std::string id, const RoleProgram& file, std::string message, const Op* op = nullptr) {
    out_.push_back(MakeFinding(Severity::kError, std::move(id), file, std::move(message), op));
  }
  void Warning(std::string id, const RoleProgram& file, std::string message, const Op* op = nullptr) {
    out_.push_back(MakeFinding(Severity::kWarning, std::move(id), file, std::move(message), op));
  }
  void Note(std::string id, const RoleProgram& file, std::string message) {
    out_.push_back(MakeFinding(Severity::kNote, std::move(id), file, std::move(message)));
  }
  void Add(Finding finding) { out_.push_back(std::move(finding)); }
  void Detail(std::string line) { out_.back().details.push_back(Shortened(std::move(line))); }

 private:
  std::vector<Finding>& out_;
};

// The rules. Each appends its findings; README.md states what each requires.
void CheckPrograms(const RoleFiles& roles, const OpRegistry& ops, Findings& findings);
// The plan that programs carry, if they do.
void CheckPlans(const RoleFiles& roles, const RoleFacts& facts, Findings& findings);
// Settings that Fluid does not have.
void CheckPolicies(const RoleFiles& roles, const RoleFacts& facts, Findings& findings);
void CheckMessages(const RoleFacts& facts, Findings& findings);
void CheckTiling(const RoleFacts& facts, Findings& findings);
void CheckUpdates(const RoleFacts& facts, const OpRegistry& ops, Findings& findings);
// One optimizer op, on any role, against the declaration of its type.
void CheckOptimizer(const RoleProgram& file, int block, const Op& op, const OpRegistry& ops,
                    Findings& findings);
void CheckTrainerUpdates(const RoleFacts& facts, const OpRegistry& ops, Findings& findings);
void CheckMeasures(const RoleFacts& facts, const OpRegistry& ops, Findings& findings);
void CheckServing(const RoleFacts& facts, Findings& findings);
void CheckDelay(const RoleFacts& facts, Findings& findings);
void CheckTables(const RoleFacts& facts, Findings& findings);
void CheckBarriers(const RoleFacts& facts, Findings& findings);
void CheckCommOps(const RoleFacts& facts, Findings& findings);
void CheckOrder(const RoleFacts& facts, Findings& findings);
void CheckStartup(const RoleFacts& facts, Findings& findings);
// `source` is null if it is not given.
void CheckDeclarations(const RoleFacts& facts, const SourcePrograms* source, Findings& findings);
void CheckStepCounters(const RoleFacts& facts, const SourcePrograms* source, Findings& findings);
void CheckStartRows(const RoleFacts& facts, const OpRegistry& ops, const SourcePrograms* source,
                    Findings& findings);
void CheckSharedStart(const RoleFacts& facts, Findings& findings);
void CheckGeo(const RoleFacts& facts, Findings& findings);
void CheckProgress(const RoleFacts& facts, Findings& findings);
void CheckCollective(const RoleFacts& facts, Findings& findings);
// Jobs with pservers and rings: each gradient has one exchange.
void CheckBothExchanges(const RoleFacts& facts, Findings& findings);
void CheckStreams(const RoleFacts& facts, Findings& findings);
void CheckRankStart(const RoleFacts& facts, Findings& findings);
// The number of ranks that the first trainer's programs state; if they do not, the number of trainer
// programs.
int RanksOf(const RoleFacts& facts);

}  // namespace penstock::check
