#include "transpiler/passes/spell/collective_ops.h"

#include <algorithm>

#include "transpiler/passes/spell/comm_ops.h"

namespace penstock::passes {
namespace {

Op InPlace(const char* type, const std::string& var) {
  Op op(type);
  op.AddInput("X", {var}).AddOutput("Out", {var});
  return op;
}

NameList Others(const RingSpec& spec) {
  NameList others = spec.addresses;
  others.erase(others.begin() + spec.rank);
  return others;
}

}  // namespace

Op MakeGenNcclId(const NcclIdSpec& spec) {
  Op op("gen_nccl_id");
  op.AddOutput("NCCLID", {spec.id});
  op.Set("trainers", spec.trainers).Set("trainer_id", spec.trainer_id).Set("nccl_comm_num", spec.rings);
  op.Set("use_hierarchical_allreduce", spec.node_ranks > 0);
  op.Set("hierarchical_allreduce_inter_nranks", spec.node_ranks);
  return WithFrame(std::move(op), OpRole::kForward);
}

Var RingIdVar(std::string name) {
  Var var;
  var.name = std::move(name);
  var.kind = VarKind::kRaw;
  var.persistable = true;
  return var;
}

Op MakeGenRingId(const RingSpec& spec) {
  Op op("c_gen_nccl_id");
  op.AddOutput("Out", {spec.id});
  op.Set("rank", spec.rank).Set("endpoint", spec.addresses[static_cast<std::size_t>(spec.rank)]);
  op.Set("other_endpoints", Others(spec));
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeInitRing(const RingSpec& spec) {
  Op op("c_comm_init");
  op.AddInput("X", {spec.id});
  op.Set("nranks", static_cast<int>(spec.addresses.size())).Set("rank", spec.rank).Set("ring_id", spec.ring);
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeInitRingOfDevices(int ring) {
  Op op("c_comm_init_all");
  op.Set("devices", std::vector<std::int32_t>()).Set("ring_id", ring);
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeBroadcast(const std::string& var, int ring) {
  Op op = InPlace("c_broadcast", var);
  op.Set("ring_id", ring).Set("root", 0).Set("use_calc_stream", false);
  return WithFrame(std::move(op), OpRole::kForward);
}

Op MakeAllReduce(const std::string& var, int ring, OpRole role) {
  Op op = InPlace("c_allreduce_sum", var);
  op.Set("ring_id", ring).Set("use_calc_stream", false);
  return WithFrame(std::move(op), role);
}

Op MakeSparseAllReduce(const std::string& var, int ring, OpRole role) {
  Op op = InPlace("c_sparse_allreduce_sum", var);
  op.Set("ring_id", ring);
  return WithFrame(std::move(op), role);
}

Op MakeAllReduceAdasum(const std::string& var, int ring, OpRole role) {
  Op op = InPlace("c_allreduce_adasum", var);
  op.Set("ring_id", ring).Set("use_calc_stream", false);
  return WithFrame(std::move(op), role);
}

Op MakeAwaitComputation(const std::string& var, OpRole role) {
  Op op = InPlace("c_sync_calc_stream", var);
  return WithFrame(std::move(op), role);
}

Op MakeAwaitRing(const std::string& var, int ring, OpRole role) {
  Op op = InPlace("c_sync_comm_stream", var);
  op.Set("ring_id", ring);
  return WithFrame(std::move(op), role);
}

Op MakeSubtractFromSnapshot(const std::string& snapshot, const std::string& param) {
  Op op("elementwise_sub");
  op.AddInput("X", {snapshot}).AddInput("Y", {param}).AddOutput("Out", {param});
  op.Set("axis", -1).Set("use_mkldnn", false).Set("x_data_format", "").Set("y_data_format", "");
  return WithFrame(std::move(op), OpRole::kOptimize);
}

Op MakeCopy(const std::string& from, const std::string& to, OpRole role) {
  Op op("assign");
  op.AddInput("X", {from}).AddOutput("Out", {to});
  return WithFrame(std::move(op), role);
}

Op MakeCast(const Var& from, const Var& to, OpRole role) {
  Op op("cast");
  op.AddInput("X", {from.name}).AddOutput("Out", {to.name});
  op.Set("in_dtype", static_cast<int>(from.type->dtype)).Set("out_dtype", static_cast<int>(to.type->dtype));
  return WithFrame(std::move(op), role);
}

}  // namespace penstock::passes
