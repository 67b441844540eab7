// The only file that spells the slots and attributes of ops between ranks, as comm_ops.h does for pservers.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/op.h"
#include "framework/ir/var.h"

namespace penstock::passes {

struct NcclIdSpec {
  std::vector<std::string> trainers;  // addresses of all ranks
  int trainer_id = 0;
  int rings = 1;
  int node_ranks = 0;  // ranks per group of hierarchical all-reduce; 0: no groups
  std::string id;      // the variable of the first ring's id
};
Op MakeGenNcclId(const NcclIdSpec& spec);

// The variable that holds the id of a ring.
Var RingIdVar(std::string name);

// One ring. Rank 0 creates its id, and all ranks create its communicator.
struct RingSpec {
  std::vector<std::string> addresses;
  int rank = 0;
  int ring = 0;
  std::string id;
};
Op MakeGenRingId(const RingSpec& spec);
Op MakeInitRing(const RingSpec& spec);
Op MakeInitRingOfDevices(int ring);

// In place: every rank gets rank 0's values, or the sum over all ranks.
Op MakeBroadcast(const std::string& var, int ring);
Op MakeAllReduce(const std::string& var, int ring, OpRole role);
// The same sum, for tensors that are mostly zero.
Op MakeSparseAllReduce(const std::string& var, int ring, OpRole role);
Op MakeAllReduceAdasum(const std::string& var, int ring, OpRole role);
// The communication stream waits for the computation of `var`; the computation waits for a ring.
Op MakeAwaitComputation(const std::string& var, OpRole role);
Op MakeAwaitRing(const std::string& var, int ring, OpRole role);

// param = snapshot - param: turns a parameter into its update since the snapshot, and back.
Op MakeSubtractFromSnapshot(const std::string& snapshot, const std::string& param);
Op MakeCopy(const std::string& from, const std::string& to, OpRole role);
// Converts a variable to the element type of another.
Op MakeCast(const Var& from, const Var& to, OpRole role);

}  // namespace penstock::passes
