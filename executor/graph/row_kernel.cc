#include "executor/graph/row_kernel.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "executor/graph/explain.h"
#include "executor/graph/infer.h"
#include "executor/graph/kernels.h"
#include "executor/graph/memory_plan.h"
#include "executor/graph/specialise.h"
#include "framework/runtime/compute_pool.h"

namespace penstock::exec {
namespace {

// Parts of this size are read again from a cache of the core, and take far longer than the calls of the
// kernels.
constexpr std::size_t kPartBytes = std::size_t{1} << 19;

std::size_t BytesOfType(const TensorDesc& type) {
  return static_cast<std::size_t>(type.shape.Count()) * SizeOf(type.dtype);
}

// The ops, prepared for a number of rows.
struct RowForm {
  Dim rows = 0;                                             // 0: the arguments are not cut
  std::vector<TensorDesc> types;                            // by slot of the chain
  Kernels kernels;                                          // by op
  std::vector<std::vector<std::size_t>> workspace_offsets;  // by op, in the memory of the lane
  std::vector<std::vector<std::byte*>> workspaces;
  std::vector<Variable> variables;  // by slot: parts of arguments, and temporaries
  std::vector<Variable*> table;     // by slot: what kernels use
};

// A share of the parts that one thread computes.
struct RowLane {
  Dim begin = 0, end = 0;
  RowForm full, rest;  // rest: a last part of fewer rows
  WorkspaceId memory;
  std::byte* bound = nullptr;  // where `memory` was in the last run
  Status status;
};

class RowKernel : public Kernel {
 public:
  explicit RowKernel(std::shared_ptr<const RowChain> chain) : chain_(std::move(chain)) {}

  Status Prepare(KernelSetup& k) override {
    std::vector<TensorDesc> read;
    for (const SlotDef& slot : chain_->def.inputs()) {
      arguments_.push_back(k.Input(slot.name));
      read.push_back(k.Input(slot.name));
    }
    for (const SlotDef& slot : chain_->def.outputs()) arguments_.push_back(k.Output(slot.name));
    PENSTOCK_ASSIGN_OR_RETURN(types_, TypesOfChain(*chain_, std::move(read)));
    if (!types_.by_rows) types_.cut = RowCut();
    homes_ = HomesOf(*chain_, types_);
    for (std::size_t s = 0; s < arguments_.size(); ++s) (IsCut(s) ? cut_ : whole_).push_back(s);
    return PrepareLanes(k);
  }

  Status Run(KernelRun& k) override {
    for (RowLane& lane : lanes_) Bind(k, lane);
    if (lanes_.size() == 1) return RunLane(k, lanes_[0]);
    ParallelFor(static_cast<std::int64_t>(lanes_.size()), lane_ns_, 1,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    RowLane& lane = lanes_[static_cast<std::size_t>(i)];
                    lane.status = RunLane(k, lane);
                  }
                });
    for (RowLane& lane : lanes_) {
      if (!lane.status.ok()) return std::exchange(lane.status, OkStatus());
    }
    return OkStatus();
  }

 private:
  bool IsCut(std::size_t slot) const { return types_.cut.IsCut(static_cast<int>(slot)); }
  std::size_t first_temporary() const { return arguments_.size(); }

  Status PrepareLanes(KernelSetup& k) {
    const std::size_t row_bytes = DivideRows(k.threads());
    const Dim lanes = std::min<Dim>(parts_, k.threads());
    Services services = k.services();
    if (lanes > 1) services.threads = 1;
    offsets_ = PlaceTemporaries(part_);
    lanes_.resize(static_cast<std::size_t>(lanes));
    for (Dim i = 0; i < lanes; ++i) {
      RowLane& lane = lanes_[static_cast<std::size_t>(i)];
      lane.begin = parts_ * i / lanes;
      lane.end = parts_ * (i + 1) / lanes;
      std::size_t bytes = offsets_.back();
      lane.full.rows = part_;
      PENSTOCK_RETURN_IF_ERROR(PrepareForm(services, offsets_.back(), lane.full, bytes));
      if (part_ > 0 && inner_ % part_ != 0) {
        lane.rest.rows = inner_ % part_;
        PENSTOCK_RETURN_IF_ERROR(PrepareForm(services, offsets_.back(), lane.rest, bytes));
      }
      lane.memory = k.Workspace(bytes);
    }
    constexpr double kByteNs = 0.1;
    lane_ns_ = kByteNs * static_cast<double>(row_bytes) * static_cast<double>(part_ * parts_ / lanes);
    return OkStatus();
  }

  // Returns the bytes of a row. A part has rows of the last dimension that counts them, for one index of the
  // dimensions before.
  std::size_t DivideRows(Dim threads) {
    const Shape& rows = types_.cut.rows();
    if (rows.rank() == 0) return 0;
    const std::size_t row_bytes = BytesOfRow();
    inner_ = rows[rows.rank() - 1];
    const Dim outer = rows.Count() / inner_;
    const Dim most = RowsTogether(inner_, row_bytes);
    Dim of_inner = (inner_ + most - 1) / most;
    if (outer == 1 && of_inner > 1) of_inner = std::min(inner_, (of_inner + threads - 1) / threads * threads);
    part_ = (inner_ + of_inner - 1) / of_inner;
    parts_ = outer * ((inner_ + part_ - 1) / part_);
    return row_bytes;
  }

  // Of the memory that a row uses.
  std::size_t BytesOfRow() const {
    std::size_t bytes = PlaceTemporaries(1).back();
    for (const std::size_t s : cut_) bytes += BytesOfType(Cut(s, 1));
    return bytes;
  }
  static Dim RowsTogether(Dim rows, std::size_t row_bytes) {
    return std::clamp<Dim>(static_cast<Dim>(kPartBytes / std::max<std::size_t>(row_bytes, 1)), 1, rows);
  }

  // The offset of each slot's memory, for temporaries without a home, and their end.
  std::vector<std::size_t> PlaceTemporaries(Dim part) const {
    std::vector<Lifetime> lives;
    std::vector<int> life_of(types_.types.size(), -1);
    for (std::size_t s = first_temporary(); s < life_of.size(); ++s) {
      if (homes_[s] >= 0) continue;
      life_of[s] = static_cast<int>(lives.size());
      lives.push_back({.bytes = BytesOfType(Cut(s, part)), .first = -1, .last = -1});
    }
    int at = 0;
    const auto extend = [&](int slot) {
      const int of = life_of[static_cast<std::size_t>(slot)];
      if (of < 0) return;
      Lifetime& life = lives[static_cast<std::size_t>(of)];
      if (life.first < 0) life.first = at;
      life.last = at;
    };
    for (const Instruction& member : chain_->block.instructions) {
      EachSlot(member.inputs, extend);
      EachSlot(member.outputs, extend);
      ++at;
    }
    const MemoryPlan plan = PlanMemory(lives);
    std::vector<std::size_t> offsets;
    for (const int of : life_of) offsets.push_back(of < 0 ? 0 : plan.offsets[static_cast<std::size_t>(of)]);
    offsets.push_back(plan.arena_bytes);
    return offsets;
  }

  TensorDesc Cut(std::size_t slot, Dim rows) const {
    TensorDesc type = types_.types[slot];
    if (!IsCut(slot)) return type;
    const int last = types_.cut.rows().rank() - 1;
    for (int i = 0; i < last; ++i) type.shape.Set(i, 1);
    type.shape.Set(last, rows);
    type.lod_level = 0;
    return type;
  }

  // Prepares the kernels for form.rows. Workspaces begin at `first`; `bytes` grows to their end.
  Status PrepareForm(const Services& services, std::size_t first, RowForm& form, std::size_t& bytes) const {
    for (std::size_t s = 0; s < types_.types.size(); ++s) form.types.push_back(Cut(s, form.rows));
    for (const Instruction& member : chain_->block.instructions) {
      PENSTOCK_ASSIGN_OR_RETURN(const Inferred inferred, InferInstruction(chain_->block, member, form.types));
      RequireTypes(member, inferred, form);
      PENSTOCK_ASSIGN_OR_RETURN(PreparedKernel prepared,
                                PrepareKernel(chain_->block, member, inferred, form.types, services));
      form.kernels.push_back(std::move(prepared.kernel));
      std::vector<std::size_t>& offsets = form.workspace_offsets.emplace_back();
      bytes = std::max(bytes, first + LayOutWorkspaces(prepared.workspaces, offsets));
      for (std::size_t& offset : offsets) offset += first;
      form.workspaces.emplace_back(offsets.size());
    }
    form.variables = std::vector<Variable>(types_.types.size());
    form.table.resize(types_.types.size());
    for (std::size_t s = 0; s < form.table.size(); ++s)
      form.table[s] = &form.variables[homes_[s] >= 0 ? static_cast<std::size_t>(homes_[s]) : s];
    return OkStatus();
  }

  // What the ops leave has the memory of the types that were inferred for all rows.
  static void RequireTypes(const Instruction& member, const Inferred& inferred, const RowForm& form) {
    for (std::size_t i = 0; i < member.outputs.size(); ++i) {
      for (std::size_t j = 0; j < member.outputs[i].size(); ++j) {
        const int slot = member.outputs[i][j];
        PENSTOCK_CHECK(
            slot < 0 || inferred.outputs[i][j].shape == form.types[static_cast<std::size_t>(slot)].shape,
            member.op->type());
      }
    }
  }

  void Bind(KernelRun& k, RowLane& lane) const {
    std::byte* const memory = k.Workspace(lane.memory);
    for (RowForm* form : {&lane.full, &lane.rest}) {
      if (form->kernels.empty()) continue;
      for (const std::size_t s : whole_) form->table[s] = &k.Var(arguments_[s]);
      if (memory != lane.bound) BindMemory(memory, *form);
    }
    lane.bound = memory;
  }
  void BindMemory(std::byte* memory, RowForm& form) const {
    for (std::size_t m = 0; m < form.workspaces.size(); ++m) {
      for (std::size_t w = 0; w < form.workspaces[m].size(); ++w)
        form.workspaces[m][w] = memory + form.workspace_offsets[m][w];
    }
    for (std::size_t s = first_temporary(); s < form.types.size(); ++s) {
      if (homes_[s] >= 0) continue;
      const TensorDesc& type = form.types[s];
      const std::shared_ptr<void> frame(std::shared_ptr<void>(),
                                        memory);  // outlives the kernel: owns nothing
      form.variables[s].As<Tensor>() =
          Tensor(type.dtype, type.shape, Buffer::Borrow(memory + offsets_[s], BytesOfType(type), frame), 0);
    }
  }
  Status RunLane(KernelRun& k, RowLane& lane) const {
    if (lane.full.rows == 0) return RunForm(k, lane.full);
    const Dim of_inner = (inner_ + part_ - 1) / part_;
    Status status;
    for (Dim part = lane.begin; part < lane.end && status.ok(); ++part) {
      const Dim first = part % of_inner * part_;  // among the inner rows
      RowForm& form = inner_ - first < part_ ? lane.rest : lane.full;
      for (const std::size_t s : cut_) View(k[arguments_[s]], part / of_inner * inner_ + first, s, form);
      status = RunForm(k, form);
    }
    // Whoever else holds the arguments' memory may look for other users of it.
    for (RowForm* form : {&lane.full, &lane.rest}) {
      for (const std::size_t s : cut_) {
        if (!form->variables.empty()) form->variables[s].As<Tensor>() = Tensor();
      }
    }
    return status;
  }
  // Lets the form see its rows of an argument, from `row` on.
  void View(const Tensor& whole, Dim row, std::size_t slot, RowForm& form) const {
    const TensorDesc& type = form.types[slot];
    const std::size_t row_bytes = BytesOfType(type) / static_cast<std::size_t>(form.rows);
    form.variables[slot].As<Tensor>() =
        Tensor(type.dtype, type.shape, whole.buffer(),
               whole.offset_bytes() + static_cast<std::size_t>(row) * row_bytes);
  }
  Status RunForm(KernelRun& k, RowForm& form) const {
    for (std::size_t m = 0; m < form.kernels.size(); ++m) {
      KernelRun run(form.table.data(), form.workspaces[m].data(), &k.scope());
      Status status = form.kernels[m]->Run(run);
      if (!status.ok()) [[unlikely]]
        return Explain(std::move(status), chain_->block.instructions[m]);
    }
    return OkStatus();
  }
  Status Explain(Status status, const Instruction& member) const {
    return ExplainOp(std::move(status), chain_->block.program, chain_->block.block, member.position,
                     FactsOf(chain_->block, member, types_.types));
  }

  const std::shared_ptr<const RowChain> chain_;
  std::vector<Operand> arguments_;  // inputs, then outputs: the first slots of the chain
  ChainTypes types_;
  std::vector<int> homes_;                // by slot (HomesOf)
  std::vector<std::size_t> cut_, whole_;  // arguments
  std::vector<std::size_t> offsets_;      // by slot: of temporaries, in the memory of a lane
  Dim inner_ = 0;                         // rows of the last dimension that counts them
  Dim part_ = 0, parts_ = 1;              // rows of a part; their number
  std::vector<RowLane> lanes_;
  double lane_ns_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> NewRowKernel(std::shared_ptr<const RowChain> chain) {
  return std::make_unique<RowKernel>(std::move(chain));
}

}  // namespace penstock::exec
