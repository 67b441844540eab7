// Helpers that the communication kernels share: the services they need, and the servers and pieces that their
// attributes name.
#pragma once

#include <string>
#include <vector>

#include "framework/op/kernel.h"
#include "framework/roles/row_pieces.h"
#include "framework/roles/views.h"
#include "framework/runtime/rpc_client.h"
#include "framework/runtime/trainer_communicator.h"

namespace penstock {

inline Result<RpcClient*> RequireRpc(const KernelSetup& k) {
  if (k.services().rpc != nullptr) return k.services().rpc;
  return FailedPrecondition("E-comm-no-client", k.op().type(),
                            ": this process has no client for parameter servers; run the ",
                            "program as a trainer of a job");
}

// kInvalidArgument unless `epmap` names one server for each variable of a slot.
inline Status CheckServers(const KernelSetup& k, std::size_t variables, roles::Names servers) {
  if (servers.size() == variables) return OkStatus();
  return k.Error("epmap names ", servers.size(), " servers for ", variables, " variables");
}

// Returns the id of the trainer that runs the op; 0 if the op does not say.
inline int TrainerOf(const KernelSetup& k) { return roles::TrainerOf(k.op()).value_or(0); }

inline std::vector<std::string> TextsOf(roles::Names names) { return {names.begin(), names.end()}; }

inline RemotePiece PieceOf(const TensorDesc& variable, std::string server, std::string remote_name,
                           int trainer_id) {
  return {.pserver = std::move(server),
          .name = std::move(remote_name),
          .dtype = variable.dtype,
          .shape = variable.shape,
          .trainer_id = trainer_id};
}

// For ops that hand their variables to the trainer's communicator, which sends or receives them later.
// kFailedPrecondition E-communicator-missing: the process has no communicator.
inline Result<TrainerCommunicator*> RequireCommunicator(const KernelSetup& k) {
  PENSTOCK_ASSIGN_OR_RETURN(RpcClient* const client, RequireRpc(k));
  if (client->communicator() != nullptr) return client->communicator();
  return FailedPrecondition("E-communicator-missing", k.op().type(),
                            ": it speaks through the trainer's communicator, which this process has none of");
}

// Returns the variable that the communicator splits or joins for the op, with the server of each piece.
inline Result<WholeVariable> CutOf(const KernelSetup& k) {
  if (k.site().program == nullptr) return k.Error("its program is not known");
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<roles::RowPiece> pieces,
                            roles::RowPiecesOf(*k.site().program, k.op()));
  WholeVariable whole{.name = roles::WholeOf(k.op()), .pieces = {}};
  for (const roles::RowPiece& piece : pieces) {
    whole.pieces.push_back({.remote = {.pserver = piece.pserver,
                                       .name = piece.type.name,
                                       .dtype = piece.type.dtype,
                                       .shape = piece.type.shape,
                                       .trainer_id = TrainerOf(k)},
                            .begin = piece.begin,
                            .end = piece.end});
  }
  return whole;
}

}  // namespace penstock
