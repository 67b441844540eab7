// What the communication kernels share: the service they need, and the attributes of Fluid's other ways to
// communicate, which are refused by name instead of being passed over.
#pragma once

#include <string>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/roles/views.h"
#include "framework/runtime/rpc_client.h"

namespace penstock {

inline Result<RpcClient*> RequireRpc(const KernelSetup& k) {
  if (k.services().rpc != nullptr) return k.services().rpc;
  return FailedPrecondition("E-comm-no-client", k.op().type(),
                            ": this process has no client for parameter servers; run the ",
                            "program as a trainer of a job");
}

// Where variable i of a slot lives; each has its own server in `epmap`.
inline Status CheckServers(const KernelSetup& k, std::size_t variables, roles::Names servers) {
  if (servers.size() == variables) return OkStatus();
  return k.Error("epmap names ", servers.size(), " servers for ", variables, " variables");
}

// The trainer that runs the op.
inline int TrainerOf(const KernelSetup& k) { return roles::TrainerOf(k.op()).value_or(0); }

inline std::vector<std::string> TextsOf(roles::Names names) { return {names.begin(), names.end()}; }

inline RemotePiece PieceOf(const Operand& variable, std::string server, std::string remote_name,
                           int trainer_id) {
  return {.pserver = std::move(server),
          .name = std::move(remote_name),
          .dtype = variable.dtype,
          .shape = variable.shape,
          .trainer_id = trainer_id};
}

}  // namespace penstock
