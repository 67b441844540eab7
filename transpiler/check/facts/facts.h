// What the rules need to know of each role, read once from its program. Names of variables are looked up,
// never read: which gradient belongs to which parameter follows from who sends what to whom. Names are those
// that stand in the programs, which outlive the facts.
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
#include "framework/roles/trainer_role.h"
#include "transpiler/check/check.h"

namespace penstock::check {

// A pserver's address and a variable there: texts of the programs and of the facts, which outlive what rules
// make of them.
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

// With how both sides declare it.
struct Piece : roles::Piece {
  const Var* here = nullptr;            // `local` as block 0 declares it, null if it does not
  const PserverFacts* to = nullptr;     // null: the set has none of that address
  const Var* there = nullptr;           // `remote` as its block 0 declares it
  const UpdateBlock* reader = nullptr;  // of what is sent: what reads it there, null if nothing does
};

// One send or recv.
struct Transfer {
  const Op* op = nullptr;
  int position = 0;        // of the op in block 0
  std::string_view param;  // of the op's (param, grad) pair; empty if it has none
  std::string_view whole;  // what the pieces are cut from or joined to
  Cut cut = Cut::kNot;
  const Op* cut_op = nullptr;  // the op that splits or joins; null if there is none
  int cut_position = 0;
  bool counts_steps = false;  // not a gradient: tells the pservers that a step was done
  std::vector<Piece> pieces;
};

struct Barrier {
  roles::Names pservers;
  const Op* op = nullptr;
  int position = 0;
};

// Rows of a table that are read on the pservers, step by step.
struct Lookup {
  const Op* op = nullptr;  // that asks
  int position = 0;
  std::string_view table;     // the trainer's variable; empty if the op does not name it
  Cut cut = Cut::kByRows;     // or kById
  std::vector<Piece> pieces;  // kByRows: slices of the table; kById: the variables of the ids
  const Op* split = nullptr;  // kById: shards the ids, and puts the rows together
  const Op* merge = nullptr;
};

struct TrainerFacts {
  const RoleProgram* file = nullptr;
  const RoleProgram* startup = nullptr;  // null if it is not in the folder
  int trainer_id = 0;
  std::vector<Transfer> sends, recvs, startup_recvs;
  std::vector<Barrier> send_barriers, fetch_barriers, startup_barriers;
  std::vector<Lookup> lookups;
  ViewSet remote_tables;                    // parameters that an op reads from the servers by itself
  ViewMap<const Op*> gradients;             // param -> the backward op that has it in its pair
  std::set<std::string_view> updated_here;  // parameters with an optimizer op on the trainer
  bool by_communicator = false;             // ops name what is sent; a thread of the process sends it
  std::vector<Transfer> tells_ids;          // geo: sends that name the tables whose rows were touched

  // Sends that carry gradients, and those by parameter.
  const Transfer* FindSend(std::string_view param) const;
  const Transfer* FindRecv(std::string_view param) const;
  ViewMap<std::size_t> send_of, recv_of;  // positions in sends, recvs
};

// One optimize block of a pserver.
struct UpdateBlock : roles::Update {
  const Var* param_var = nullptr;  // as its block sees them, null if they are not declared
  const Var* grad_var = nullptr;
  bool by_id = false;  // the shard of a table sharded by id
  bool plain = false;  // it is, and is updated as Fluid does: with what arrives, added up
  // In the order in which they are run.
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
  roles::Names received;             // what listen_and_serv lists
  std::span<const BlockRef> blocks;  // likewise
  std::vector<UpdateBlock> updates;
  int lr_block = -1, checkpoint_block = -1;
  int shared_block = -1;         // computes for all updates what no gradient alone says; -1: none does
  const Op* exchange = nullptr;  // tells other pservers what was measured here; null if none does
  std::map<std::string, int, std::less<>> prefetch_blocks;  // variable of the ids -> block
  ViewMap<std::size_t> consumer;                            // what arrives -> position in updates
  ViewMap<std::size_t> updated_by;                          // param piece -> position in updates
  std::set<std::string, std::less<>> counters;              // what the lr block counts: they arrive

  const UpdateBlock* UpdateOf(std::string_view piece) const;   // null if it is not updated here
  const UpdateBlock* ConsumerOf(std::string_view name) const;  // null if nobody reads it
};

struct RoleFacts {
  std::vector<TrainerFacts> trainers;
  std::vector<PserverFacts> pservers;
  std::map<std::string, std::size_t, std::less<>> by_address;
  const PserverFacts* FindPserver(std::string_view address) const;
  bool sync() const;  // every pserver says so, and trainers send by themselves
  bool geo() const;
  // Trainers add up among themselves: all that is trained, or, beside pservers, what is dense.
  bool ranks() const;
  // The pservers say sync, but nothing else does: no trainer ends a step, no block merges.
  bool async_called_sync() const;
};

// The findings are about what is so broken that no facts can be read (a pserver without listen_and_serv).
RoleFacts ReadFacts(const RoleFiles& roles, const OpRegistry& ops, ThreadPool* threads,
                    std::vector<Finding>& findings);
TrainerFacts ReadTrainer(const RoleFiles& roles, std::size_t index, const OpRegistry& ops);
// What any trainer sends, by the address of the pserver.
struct Sent {
  const Piece* piece = nullptr;
  Cut cut = Cut::kNot;
};
using SentTo = ViewMap<std::vector<Sent>>;
std::optional<PserverFacts> ReadPserver(const RoleFiles& roles, std::size_t index, const OpRegistry& ops,
                                        const SentTo& sent, std::vector<Finding>& findings);

// A name as one block sees it.
struct InBlock {
  int block = 0;
  std::string_view name;
};
// Program::FindVar of each, for less.
std::vector<const Var*> FindVars(const Program& program, std::span<const InBlock> names);

using roles::FindOptimizerSlots;

// Calls `visit` with each (param, grad) pair of op_role_var, in the program's own texts.
template <typename Visit>
void ForEachPair(const Op& op, const Visit& visit) {
  const auto* names = op.Get<std::vector<std::string>>(kRoleVarAttr);
  for (std::size_t i = 0; names != nullptr && i + 1 < names->size(); i += 2)
    visit(std::string_view((*names)[i]), std::string_view((*names)[i + 1]));
}

const std::vector<std::string>& StringsOf(const Op& op, std::string_view attr);  // none if it is not there
std::vector<std::int64_t> LongsOf(const Op& op, std::string_view attr);          // ints too

std::string Shortened(std::string line);
Finding MakeFinding(Severity severity, std::string id, const RoleProgram& file, std::string message,
                    const Op* op = nullptr);

// Where rules put what they find.
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

// The rules. Each appends what it finds.
void CheckPrograms(const RoleFiles& roles, const OpRegistry& ops, Findings& findings);
// The plan that programs carry, where they do.
void CheckPlans(const RoleFiles& roles, const RoleFacts& facts, Findings& findings);
// What they say of settings that Fluid does not have.
void CheckPolicies(const RoleFiles& roles, const RoleFacts& facts, Findings& findings);
void CheckMessages(const RoleFacts& facts, Findings& findings);
void CheckTiling(const RoleFacts& facts, Findings& findings);
void CheckUpdates(const RoleFacts& facts, const OpRegistry& ops, Findings& findings);
// One optimizer op, wherever it stands; what is known of its type.
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
// Null: the source is not given.
void CheckDeclarations(const RoleFacts& facts, const SourcePrograms* source, Findings& findings);
void CheckStepCounters(const RoleFacts& facts, const SourcePrograms* source, Findings& findings);
void CheckStartRows(const RoleFacts& facts, const OpRegistry& ops, const SourcePrograms* source,
                    Findings& findings);
void CheckSharedStart(const RoleFacts& facts, Findings& findings);
void CheckGeo(const RoleFacts& facts, Findings& findings);
void CheckProgress(const RoleFacts& facts, Findings& findings);
void CheckCollective(const RoleFacts& facts, Findings& findings);
// Jobs with both: each gradient has one exchange.
void CheckBothExchanges(const RoleFacts& facts, Findings& findings);
void CheckStreams(const RoleFacts& facts, Findings& findings);
void CheckRankStart(const RoleFacts& facts, Findings& findings);
// How many ranks a job without pservers has; its trainers, if they do not say.
int RanksOf(const RoleFacts& facts);

}  // namespace penstock::check
