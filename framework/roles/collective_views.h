// Typed views of the ops between ranks: ops that set up rings, and collective operations.
//
//   if (const CollectiveView op(entry.op); op.kind() != CollectiveKind::kNone)
//     ... all ranks of ring op.ring() reduce op.variable() ...
//
// As in views.h, a view is a reference; the op must outlive the view and its results. An absent attribute
// reads as Fluid's default: rank, root and ring 0.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "framework/ir/op.h"
#include "framework/roles/views.h"

namespace penstock::roles {

enum class CollectiveKind { kNone, kAllReduce, kBroadcast, kAllGather, kReduceScatter };

// c_allreduce_sum, _max, _min, _prod, _adasum, c_sparse_allreduce_sum, c_broadcast, c_allgather,
// c_reducescatter; allreduce and broadcast, which use ring 0.
class CollectiveView {
 public:
  explicit CollectiveView(const Op& op) : op_(op) {}
  CollectiveKind kind() const;
  const std::string& variable() const { return op_.InputName("X"); }
  const std::string& result() const { return op_.OutputName("Out"); }
  int ring() const;
  int root() const;  // of a broadcast

 private:
  const Op& op_;
};

// Whether the first of several places of a process runs the op alone: it updates what all places share.
bool IsOfFirstPlace(const Op& op);

// gen_nccl_id: sets up all rings over all trainers at once.
class AllRingsView {
 public:
  explicit AllRingsView(const Op& op) : op_(op) {}
  Names addresses() const;  // of all ranks, in order
  int rank() const;
  int rings() const;
  bool hierarchical() const;
  int group_ranks() const;  // ranks in a group; 0 or 1: the ranks of one host

 private:
  const Op& op_;
};

// c_gen_nccl_id: identifies the ranks of one ring.
class RingIdView {
 public:
  explicit RingIdView(const Op& op) : op_(op) {}
  const std::string& id() const { return op_.OutputName("Out"); }
  int rank() const;
  std::string address() const;
  Names others() const;  // addresses of the other ranks, in order

 private:
  const Op& op_;
};

// c_comm_init: makes a ring from an id. c_comm_init_all: makes a ring of this process's devices.
class RingView {
 public:
  explicit RingView(const Op& op) : op_(op) {}
  const std::string& id() const { return op_.InputName("X"); }
  int rank() const;
  int ranks() const;
  int ring() const;
  std::span<const std::int32_t> devices() const;  // empty: all devices

 private:
  const Op& op_;
};

}  // namespace penstock::roles
