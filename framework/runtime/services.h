// What kernels may ask of the process they run in. Each pointer may be null: an op that needs it says so in
// its error.
#pragma once

#include "framework/tensor/device.h"

namespace penstock {

class BlockRunner;
class CollectiveRings;
class RandomSource;
class RpcClient;
class ServerLoop;

struct Services {
  int threads = 1;                   // of the compute team
  RpcClient* rpc = nullptr;          // send, recv, barriers
  BlockRunner* blocks = nullptr;     // while, conditional_block
  ServerLoop* server = nullptr;      // listen_and_serv
  RandomSource* random = nullptr;    // seeds for ops that have none; null: the process's (runtime/random.h)
  CollectiveRings* rings = nullptr;  // c_allreduce_sum and its kin
  void* stream = nullptr;            // the device's stream (a cudaStream_t) where the device has one
};

}  // namespace penstock
