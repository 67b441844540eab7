// The services of a process that kernels may use. Each pointer may be null; an op that needs a missing
// service fails with an error that names it.
#pragma once

#include "framework/tensor/device.h"

namespace penstock {

class BlockRunner;
class CollectiveRings;
class RandomSource;
class RpcClient;
class ServerLoop;

struct Services {
  int threads = 1;                   // in the compute team
  RpcClient* rpc = nullptr;          // send, recv, barriers
  BlockRunner* blocks = nullptr;     // while, conditional_block
  ServerLoop* server = nullptr;      // listen_and_serv
  RandomSource* random = nullptr;    // seeds for ops that have none; null: the process's (runtime/random.h)
  CollectiveRings* rings = nullptr;  // c_allreduce_sum and related ops
  void* stream = nullptr;            // the device's stream (a cudaStream_t), if it has one
};

}  // namespace penstock
