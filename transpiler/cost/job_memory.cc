// Computes the memory of one trainer by the use of its variables.
#include <algorithm>

#include "transpiler/cost/job_parts.h"

namespace penstock::cost {
namespace {

// Classifies the variables of a trainer's program by name, and sums their bytes.
class MemoryReader {
 public:
  MemoryReader(const OpRegistry& ops, const Program& program, const Job& job) : ops_(ops), program_(program) {
    for (const JobTable& table : job.tables) {
      if (table.remote) remote_.insert(table.param);
    }
  }

  JobMemory Read() {
    for (int i = 0; i < program_.block_count(); ++i) {
      for (const OpEntry& entry : program_.block(i).ops()) ReadOp(*entry.op);
    }
    for (int i = 0; i < program_.block_count(); ++i) {
      for (const VarRef& var : program_.block(i).vars()) AddVar(*var);
    }
    return out_;
  }

 private:
  void ReadOp(const Op& op) {
    for (const auto* slots : {&op.inputs(), &op.outputs()}) {
      for (const Slot& slot : *slots) used_.insert(slot.args.begin(), slot.args.end());
    }
    if (Has(op.role(), OpRole::kBackward) || Has(op.role(), OpRole::kRpc) ||
        Has(op.role(), OpRole::kOptimize)) {
      for (const auto& [param, grad] : op.RolePairs()) {
        params_.insert(param);
        gradients_.insert(grad);
      }
    }
    if (roles::CommOf(op) == roles::Comm::kRecv)
      received_.insert(op.Output("Out").begin(), op.Output("Out").end());
    // A piece of a gradient is a view of it.
    if (op.type() == "split_byref") views_.insert(op.Output("Out").begin(), op.Output("Out").end());
    const std::optional<JobOptimizer> optimizer = ReadJobOptimizer(ops_, op);
    if (optimizer) state_.insert(optimizer->state.begin(), optimizer->state.end());
  }

  void AddVar(const Var& var) {
    if (var.kind != VarKind::kTensor || !var.HasShape()) return;
    if (!used_.contains(var.name) || remote_.contains(var.name) || views_.contains(var.name)) return;
    const std::optional<std::int64_t> bytes = JobBytes(var.type->dtype, var.shape());
    if (!bytes) return AddUnknown(var);
    if (params_.contains(var.name)) {
      AddBytes(out_.parameters, *bytes);
    } else if (gradients_.contains(var.name)) {
      AddBytes(out_.gradients, *bytes);
    } else if (state_.contains(var.name) && var.persistable) {
      AddBytes(out_.optimizer_state, *bytes);
    } else if (received_.contains(var.name)) {
      AddBytes(out_.copies, *bytes);
    } else if (var.persistable) {
      AddBytes(out_.other, *bytes);
    } else {
      AddBytes(out_.activations, *bytes);
    }
  }

  // Takes a single unknown extent for the batch.
  void AddUnknown(const Var& var) {
    std::vector<Dim> known;
    for (const Dim dim : var.shape().dims()) {
      if (dim >= 0) known.push_back(dim);
    }
    const bool one = known.size() + 1 == var.shape().dims().size();
    const std::optional<std::int64_t> bytes = JobBytes(var.type->dtype, Shape(std::move(known)));
    if (one && bytes) {
      AddBytes(out_.activations_per_example, *bytes);
    } else {
      ++out_.unknown;
    }
  }

  const OpRegistry& ops_;
  const Program& program_;
  std::set<std::string, std::less<>> used_, remote_, params_, gradients_, received_, views_, state_;
  JobMemory out_;
};

// A communicator that sends gradients keeps one copy of each. In geo mode it keeps two copies of each
// parameter: one of the last received value, from which it measures changes, and one into which it receives.
std::int64_t CommunicatorBytes(const Job& job, const JobTrainer& trainer, const JobMemory& memory) {
  std::int64_t bytes = 0;
  if (job.exchange == Exchange::kGeo) {
    AddBytes(bytes, memory.parameters);
    AddBytes(bytes, memory.parameters);
  }
  const bool sends = job.exchange == Exchange::kSyncCommunicator ||
                     job.exchange == Exchange::kAsyncCommunicator || job.exchange == Exchange::kHalfAsync;
  for (const JobMessage& message : trainer.messages) {
    if (sends && message.kind == JobMessage::Kind::kGradient) AddBytes(bytes, message.bytes);
  }
  return bytes;
}

}  // namespace

JobMemory ReadTrainerMemory(const OpRegistry& ops, const Program& program, const Job& job,
                            const JobTrainer& trainer) {
  JobMemory memory = MemoryReader(ops, program, job).Read();
  AddBytes(memory.copies, CommunicatorBytes(job, trainer, memory));
  // A residual is as large as its gradient.
  for (const JobMessage& message : trainer.messages) {
    if (message.compression.HasResidual()) AddBytes(memory.copies, message.bytes);
  }
  return memory;
}

}  // namespace penstock::cost
