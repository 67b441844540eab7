// gen_nccl_id, c_gen_nccl_id, c_comm_init, c_comm_init_all: make the communicators of a job's ranks.
#include <string>
#include <vector>

#include "framework/op/op_registry.h"
#include "framework/roles/collective_views.h"
#include "operators/common/ring.h"

namespace penstock {
namespace {

constexpr char kGenDoc[] = R"(
Trainer 0 makes one id for each of nccl_comm_num rings and sends it to all other trainers at their addresses
in `trainers`; each stores it in NCCLID, NCCLID_1, ... Communicators are made from the ids when the program
first runs on several trainers. With use_hierarchical_allreduce, trainers form groups of
hierarchical_allreduce_inter_nranks: each group gets its own id (Hierarchical_inter_NCCLID_i), and the first
trainers of all groups get another (Hierarchical_exter_NCCLID_i).)";

constexpr char kRingGenDoc[] = R"(
Rank 0 makes the id of one ring and sends it to other_endpoints; every other rank waits for it at
`endpoint`.)";

constexpr char kInitDoc[] = R"(
Makes the communicator of ring `ring_id` from the id in X. Returns when all nranks ranks have joined.)";

constexpr char kInitAllDoc[] = R"(
Makes the communicators of ring `ring_id` for all devices of this process, one rank each. There is one device,
the CPU.)";

// c_gen_nccl_id: the ranks of the job meet. No id is needed, so its variable stays empty.
class JoinRingKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(rings_, RequireRings(k));
    const roles::RingIdView op(k.op());
    rank_ = op.rank();
    addresses_.assign(op.others().begin(), op.others().end());
    if (rank_ < 0 || rank_ > static_cast<int>(addresses_.size()))
      return k.Error("rank ", rank_, " is out of range; there are ", addresses_.size() + 1, " ranks");
    addresses_.insert(addresses_.begin() + rank_, op.address());
    return OkStatus();
  }
  Status Run(KernelRun&) override { return rings_->Join(addresses_, rank_); }

 private:
  CollectiveRings* rings_ = nullptr;
  std::vector<std::string> addresses_;
  int rank_ = 0;
};

// gen_nccl_id: they meet, and make all rings. A group of at most one rank stands for the ranks of one host,
// which reduce among themselves first in any case.
class JoinAllRingsKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(rings_, RequireRings(k));
    const roles::AllRingsView op(k.op());
    addresses_.assign(op.addresses().begin(), op.addresses().end());
    rank_ = op.rank();
    count_ = op.rings();
    if (op.hierarchical() && op.group_ranks() > 1) group_ranks_ = op.group_ranks();
    return OkStatus();
  }
  Status Run(KernelRun&) override {
    PENSTOCK_RETURN_IF_ERROR(rings_->Join(addresses_, rank_));
    for (int ring = 0; ring < count_; ++ring) PENSTOCK_RETURN_IF_ERROR(rings_->MakeRing(ring, group_ranks_));
    return OkStatus();
  }

 private:
  CollectiveRings* rings_ = nullptr;
  std::vector<std::string> addresses_;
  int rank_ = 0, count_ = 1, group_ranks_ = 0;
};

// c_comm_init: all ranks make one ring.
class InitRingKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(rings_, RequireRings(k));
    const roles::RingView op(k.op());
    ring_ = op.ring();
    rank_ = op.rank();
    ranks_ = op.ranks();
    return OkStatus();
  }
  Status Run(KernelRun&) override {
    PENSTOCK_RETURN_IF_ERROR(rings_->MakeRing(ring_, 0));
    PENSTOCK_ASSIGN_OR_RETURN(CollectiveGroup* const group, rings_->Ring(ring_));
    if (group->rank() == rank_ && group->size() == ranks_) return OkStatus();
    return InvalidArgument("E-collective-init", "c_comm_init: ring ", ring_, " is for rank ", rank_, " of ",
                           ranks_, ", but this process is rank ", group->rank(), " of ", group->size());
  }

 private:
  CollectiveRings* rings_ = nullptr;
  int ring_ = 0, rank_ = 0, ranks_ = 1;
};

// c_comm_init_all: a ring of the one device.
class InitOwnRingKernel : public Kernel {
 public:
  Status Prepare(KernelSetup& k) override {
    PENSTOCK_ASSIGN_OR_RETURN(rings_, RequireRings(k));
    const roles::RingView op(k.op());
    if (op.devices().size() > 1)
      return k.Error("it names ", op.devices().size(), " devices; a process has one, the CPU");
    ring_ = op.ring();
    return OkStatus();
  }
  Status Run(KernelRun&) override { return rings_->MakeOwnRing(ring_); }

 private:
  CollectiveRings* rings_ = nullptr;
  int ring_ = 0;
};

}  // namespace

void RegisterCommunicators(OpRegistry& ops) {
  ops.Add("c_comm_init")
      .Doc("Makes the communicator of one ring.", kInitDoc)
      .Input("X", "the id that c_gen_nccl_id made", AnyType(), OfAnyKind())
      .RequiredAttr("nranks", AttrKind::kInt, "how many ranks there are", AtLeast(1))
      .RequiredAttr("rank", AttrKind::kInt, "this one", AtLeast(0))
      .Attr("ring_id", 0, "the communicator's number", AtLeast(0))
      .InferShape(OutputsAsDeclared())
      .Affects({Effect::kRing})
      .NoGrad()
      .KernelForAnyType<Cpu, InitRingKernel>();
  ops.Add("c_comm_init_all")
      .Doc("Makes the communicators of all devices of this process.", kInitAllDoc)
      .Attr("devices", std::vector<std::int32_t>(), "their numbers; none: all there are")
      .Attr("ring_id", 0, "the communicators' number", AtLeast(0))
      .InferShape(OutputsAsDeclared())
      .Affects({Effect::kRing})
      .NoGrad()
      .KernelForAnyType<Cpu, InitOwnRingKernel>();
  ops.Add("c_gen_nccl_id")
      .Doc("Agrees on the id of one ring.", kRingGenDoc)
      .Output("Out", "the id", AnyType(), OfAnyKind())
      .RequiredAttr("rank", AttrKind::kInt, "this one", AtLeast(0))
      .RequiredAttr("endpoint", AttrKind::kString, "this rank's address, host:port")
      .Attr("other_endpoints", std::vector<std::string>(), "the addresses of all other ranks")
      .InferShape(OutputsAsDeclared())
      .Affects({Effect::kRing})
      .NoGrad()
      .KernelForAnyType<Cpu, JoinRingKernel>();
  ops.Add("gen_nccl_id")
      .Doc("Agrees on the ids of all rings.", kGenDoc)
      .Output("NCCLID", "the first ring's id; the others stand in variables of known names", AnyType(),
              OfAnyKind())
      .RequiredAttr("trainers", AttrKind::kStrings, "the addresses of all trainers, in order")
      .RequiredAttr("trainer_id", AttrKind::kInt, "this one", AtLeast(0))
      .Attr("nccl_comm_num", 1, "how many rings", AtLeast(1))
      .Attr("use_hierarchical_allreduce", false, "whether there are groups")
      .Attr("hierarchical_allreduce_inter_nranks", 0, "trainers of a group", AtLeast(0))
      .InferShape(OutputsAsDeclared())
      .Affects({Effect::kRing})
      .NoGrad()
      .KernelForAnyType<Cpu, JoinAllRingsKernel>();
}

}  // namespace penstock
