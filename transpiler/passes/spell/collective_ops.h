// The one place that spells the slots and attributes of ops between ranks, as comm_ops.h does for pservers.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/op.h"
#include "framework/ir/var.h"

namespace penstock::passes {

struct NcclIdSpec {
  std::vector<std::string> trainers;  // all addresses
  int trainer_id = 0;
  int rings = 1;
  int node_ranks = 0;  // 0: no groups
  std::string id;      // the first ring's
};
Op MakeGenNcclId(const NcclIdSpec& spec);

// Holds the id of a ring.
Var RingIdVar(std::string name);

// One ring: rank 0 makes its id, all ranks make its communicator.
struct RingSpec {
  std::vector<std::string> addresses;
  int rank = 0;
  int ring = 0;
  std::string id;
};
Op MakeGenRingId(const RingSpec& spec);
Op MakeInitRing(const RingSpec& spec);
Op MakeInitRingOfDevices(int ring);

// In place: all ranks get rank 0's values, or the sum of all ranks'.
Op MakeBroadcast(const std::string& var, int ring);
Op MakeAllReduce(const std::string& var, int ring, Role role);
// The same, for tensors that are mostly zero.
Op MakeSparseAllReduce(const std::string& var, int ring, Role role);
Op MakeAllReduceAdasum(const std::string& var, int ring, Role role);
// Communication waits for what was computed; computation waits for a ring.
Op MakeAwaitComputation(const std::string& var, Role role);
Op MakeAwaitRing(const std::string& var, int ring, Role role);

// param = snapshot - param: a parameter becomes the update since the snapshot, and back.
Op MakeSubtractFromSnapshot(const std::string& snapshot, const std::string& param);
Op MakeCopy(const std::string& from, const std::string& to, Role role);
// A variable as another type.
Op MakeCast(const Var& from, const Var& to, Role role);

}  // namespace penstock::passes
