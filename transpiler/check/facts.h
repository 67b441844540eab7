// What the rules need to know of each role, read once from its program.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/op/op_registry.h"
#include "transpiler/check/check.h"

namespace penstock {

// One variable that a trainer sends or receives.
struct Message {
  std::string local;    // the trainer's variable
  std::string remote;   // the pserver's
  std::string pserver;  // address
  std::string param;    // of the op's (param, grad) pair; empty if it has none
  const Op* op = nullptr;
  int position = 0;  // of the op in block 0
};

struct Barrier {
  std::vector<std::string> pservers;
  const Op* op = nullptr;
  int position = 0;
};

struct TrainerFacts {
  const RoleProgram* file = nullptr;
  const Program* startup = nullptr;  // null if it is not in the folder
  const RoleProgram* startup_file = nullptr;
  int trainer_id = 0;
  std::vector<Message> sends, recvs, startup_recvs;
  std::vector<Barrier> send_barriers, fetch_barriers;
  // Pieces in order, by what they are cut from (split_byref) or joined to (concat), with the op.
  struct Pieces {
    std::vector<std::string> names;
    const Op* op = nullptr;
    int position = 0;
  };
  std::map<std::string, Pieces> split, joined;
  std::set<std::pair<std::string, std::string>>
      prefetched;                              // (pserver, piece) of sparse tables that are read by rows
  std::set<std::string> remote_tables;         // parameters that an op reads from the servers by itself
  std::map<std::string, const Op*> gradients;  // param -> the backward op that has it in its pair
  std::set<std::string> updated_here;          // parameters with an optimizer op on the trainer
};

// One optimize block of a pserver.
struct UpdateBlock {
  int block = 0;
  std::vector<std::string> merge_inputs;  // of its `sum`, in order: the trainers' gradients
  const Op* merge = nullptr;
  std::optional<float> scale;
  const Op* scale_op = nullptr;
  const Op* optimizer = nullptr;
  std::string param, grad;  // the pieces that the optimizer works on
};

struct PserverFacts {
  const RoleProgram* file = nullptr;
  const Program* startup = nullptr;
  const RoleProgram* startup_file = nullptr;
  const Op* serve = nullptr;
  std::string address;
  int trainers = 0;                   // Fanin
  int mode = 0;                       // distributed_mode; 0 is sync
  std::vector<std::string> received;  // listen_and_serv's X
  std::vector<UpdateBlock> updates;
  std::set<int> other_blocks;  // learning rate, prefetch, checkpoint
};

struct RoleFacts {
  std::vector<TrainerFacts> trainers;
  std::vector<PserverFacts> pservers;
  const PserverFacts* FindPserver(std::string_view address) const;
  bool sync() const;  // every pserver says so
};

// The findings are about what is so broken that no facts can be read (a pserver without listen_and_serv).
RoleFacts ReadFacts(const RoleFiles& roles, const OpRegistry& ops, std::vector<Finding>& findings);

// The optimizer's parameter and gradient slots: as declared, or Fluid's if the op is not known; nullopt if it
// is none.
struct OptimizerSlots {
  std::string param, grad;
};
std::optional<OptimizerSlots> FindOptimizerSlots(const Op& op, const OpRegistry& ops);

Finding MakeFinding(Severity severity, std::string id, const RoleProgram& file, std::string message,
                    const Op* op = nullptr);

// The rules. Each appends what it finds.
void CheckMessages(const RoleFacts& facts, std::vector<Finding>& findings);
void CheckTiling(const RoleFacts& facts, std::vector<Finding>& findings);
void CheckUpdates(const RoleFacts& facts, std::vector<Finding>& findings);
void CheckBarriers(const RoleFacts& facts, std::vector<Finding>& findings);
void CheckStartup(const RoleFacts& facts, std::vector<Finding>& findings);

}  // namespace penstock
