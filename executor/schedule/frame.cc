#include "executor/schedule/frame.h"

#include <algorithm>

#include "executor/graph/explain.h"
#include "framework/tensor/shared_heap.h"

namespace penstock::exec {
namespace {

// Assigned to a tensor to release its memory. Assigning a copy, unlike moving, keeps the capacity of the
// tensor's shape.
const Tensor kNoTensor{};

// Makes the accesses of former owners of the buffer happen before ours: each released its share with a
// decrement of the count, and the decrement of `copy` synchronizes with these. Reading use_count alone orders
// nothing.
void SyncWithFormerOwners(std::shared_ptr<Buffer> copy) { copy.reset(); }

Scope& RootOf(Scope& scope) {
  Scope* root = &scope;
  while (root->parent() != nullptr) root = root->parent();
  return *root;
}

// Whether `variable` suits a kernel that was prepared for `kind`, which is not a tensor: it holds that kind,
// or nothing yet.
bool MayStandFor(const Variable& variable, VarKind kind) {
  switch (kind) {
    case VarKind::kSelectedRows:
      return variable.Is<SelectedRows>() || !variable.initialized();
    case VarKind::kTensorArray:
      return variable.Is<TensorArray>() || !variable.initialized();
    case VarKind::kRankTable:
      return variable.Is<RankTable>() || !variable.initialized();
    case VarKind::kStepScopes:
      return variable.Is<StepScopes>() || !variable.initialized();
    default:  // kinds without a value
      return true;
  }
}

// Whether `variable` holds a tensor of this element type and shape, with any offsets.
bool IsTensorOf(const Variable& variable, const TensorDesc& type) {
  const Tensor* tensor = variable.If<Tensor>();
  return tensor != nullptr && tensor->initialized() && tensor->dtype() == type.dtype &&
         tensor->shape() == type.shape;
}

// Whether an op that told `told` before the run may do with a plan for `planned`. If it told nothing, it ends
// the run.
bool MayBe(const TensorDesc& told, const TensorDesc& planned) {
  if (!IsKnownTensor(told)) return true;
  return told.dtype == planned.dtype && told.lod_level == planned.lod_level && told.shape == planned.shape;
}

Status NotThere(const CompiledBlock& block, const SlotInfo& slot) {
  const bool fed_perhaps = !slot.var->persistable && block.use == BlockUse::kMain;
  Status status =
      fed_perhaps
          ? InvalidArgument("E-feed-missing", "feed: ", slot.name, " : ", TypeText(*slot.var), " was not fed")
          : FailedPrecondition("E-run-uninitialized", slot.name, " : ", TypeText(*slot.var),
                               " has no value: nothing was written to it yet");
  if (slot.required_by >= 0) {
    const Instruction& reader = block.instructions[static_cast<std::size_t>(slot.required_by)];
    status = ExplainOp(std::move(status), block.program, block.block, reader.position);
  }
  if (fed_perhaps)
    return std::move(status).With("note: no op writes it before it is read, and the scope does not hold it");
  return std::move(status).With("note: the startup program or a load sets such variables");
}

}  // namespace

Result<ScopeBinding> BindScope(const CompiledBlock& block, Scope& scope) {
  ScopeBinding binding;
  binding.scope = &scope;
  binding.variables.assign(block.slots.size(), nullptr);
  for (std::size_t s = 0; s < block.slots.size(); ++s) {
    const SlotInfo& slot = block.slots[s];
    if (slot.home != Home::kScope) continue;
    Variable* variable = slot.local ? scope.FindLocal(slot.name) : scope.Find(slot.name);
    if (slot.required && (variable == nullptr || !variable->initialized())) return NotThere(block, slot);
    if (variable == nullptr && slot.written) {
      // As in Fluid, a main block's persistable variables belong to the outermost scope, and a nested block's
      // results to its caller's scope.
      Scope& home = block.use == BlockUse::kMain ? RootOf(scope) : scope;
      variable = home.FindOrCreate(slot.name);
    }
    binding.variables[s] = variable;
  }
  binding.generation = scope.generation();
  return binding;
}

namespace {

Status OtherDType(const SlotInfo& slot, const Tensor& fed) {
  return InvalidArgument("E-feed-dtype", "feed: ", slot.name, " is ", DTypeName(fed.dtype()),
                         "; it is declared ", DTypeName(slot.var->type->dtype));
}

// Whether `fed` has the declared shape if, as in Fluid, the number of its sequences counts as its first
// extent.
bool HoldsAsManySequences(const Tensor& fed, const Shape& declared) {
  if (fed.lod().empty() || fed.shape().rank() == 0) return false;
  return Compatible(fed.shape().WithRows(static_cast<Dim>(fed.lod().front().size()) - 1), declared);
}

}  // namespace

Status CheckFeeds(const CompiledBlock& block, std::span<const Feed> feeds) {
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const Tensor& tensor = feeds[i].tensor;
    const SlotInfo& slot = block.slots[static_cast<std::size_t>(block.feeds[i])];
    if (!tensor.initialized()) return InvalidArgument("E-feed-empty", "feed: ", slot.name, " has no value");
    // As in Fluid, only variables declared with fluid.data must be fed as declared. Scripts declare the
    // longest sequence with layers.data and feed what a batch needs.
    if (!slot.var->type || !slot.var->need_check_feed) continue;
    const TensorType& type = *slot.var->type;
    if (tensor.dtype() != type.dtype) return OtherDType(slot, tensor);
    if (!Compatible(tensor.shape(), type.shape) && !HoldsAsManySequences(tensor, type.shape)) {
      return InvalidArgument("E-feed-shape", "feed: ", slot.name, " has shape ", tensor.shape(),
                             "; it is declared ", type.shape);
    }
  }
  return OkStatus();
}

Status ExplainByFeeds(Status refused, const CompiledBlock& block, std::span<const Feed> feeds) {
  if (refused.ok()) return refused;
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const SlotInfo& slot = block.slots[static_cast<std::size_t>(block.feeds[i])];
    if (slot.var->type && feeds[i].tensor.dtype() != slot.var->type->dtype)
      return OtherDType(slot, feeds[i].tensor).With(StrCat("note: ", refused.message()));
  }
  return refused;
}

Frame::Frame(std::shared_ptr<const Specialisation> specialisation, Kernels kernels, PlaceKind place)
    : specialisation_(std::move(specialisation)),
      kernels_(std::move(kernels)),
      place_(place),
      own_(block().slots.size()),
      variables_(block().slots.size()) {
  for (std::size_t s = 0; s < own_.size(); ++s) variables_[s] = &own_[s];
  std::vector<bool> has_place(own_.size(), false);
  for (std::size_t p = 0; p < specialisation_->places.size(); ++p) {
    const Place& place = specialisation_->places[p];
    has_place[static_cast<std::size_t>(place.slot)] = true;
    planned_.push_back(nullptr);
    if (place.own_buffer) kept_.push_back({place, static_cast<int>(p), {}});
  }
  for (std::size_t s = 0; s < own_.size(); ++s) {
    const SlotInfo& slot = block().slots[s];
    const bool grows = slot.var->kind == VarKind::kTensorArray;
    if (slot.home == Home::kFrame && !has_place[s] && (grows || slot.written_by_block))
      cleared_.push_back(static_cast<int>(s));
  }
}

void Frame::UseMemory(const FrameMemory& memory) {
  if (memory.arena == memory_.arena && memory.workspace == memory_.workspace) return;
  memory_ = memory;
  PlaceWorkspaces();
  for (std::size_t p = 0; p < specialisation_->places.size(); ++p) {
    const Place& place = specialisation_->places[p];
    if (place.own_buffer) continue;
    planned_[p] = memory_.arena->data() + place.offset;
    const TensorDesc& type = specialisation_->type(place.type);
    own_[static_cast<std::size_t>(place.slot)].As<Tensor>() =
        Tensor(type.dtype, type.shape, memory_.arena, place.offset);
  }
}

void Frame::ReleaseMemory() {
  memory_ = {};
  for (const Place& place : specialisation_->places) {
    if (!place.own_buffer) own_[static_cast<std::size_t>(place.slot)].As<Tensor>() = kNoTensor;
  }
}

bool Accepts(const Specialisation& plan, const Supplied& supplied, const ScopeBinding& binding) {
  if (!std::ranges::equal(supplied.peeked, plan.peeked, MayBe)) return false;
  const std::vector<int>& key = plan.block->key;
  for (std::size_t k = 0; k < key.size(); ++k) {
    const TensorDesc& info = plan.key[k];
    const int feed = plan.block->feed_of_key[k];
    if (feed >= 0) {
      if (!Holds(supplied.feeds[static_cast<std::size_t>(feed)].tensor, info)) return false;
    } else if (!Holds(*binding.variables[static_cast<std::size_t>(key[k])], info)) {
      return false;
    }
  }
  return true;
}

void Frame::Bind(const ScopeBinding& binding) {
  binding_ = binding;
  for (std::size_t s = 0; s < variables_.size(); ++s) {
    // Slots that a pass has added are temporaries.
    Variable* found = s < binding_.variables.size() ? binding_.variables[s] : nullptr;
    variables_[s] = found != nullptr ? found : &own_[s];
  }
  imports_.reset();
  if (block().imports.empty()) return;
  imports_ = std::make_unique<Scope>(binding_.scope);
  for (const int slot : block().imports) {
    const auto s = static_cast<std::size_t>(slot);
    imports_->Bind(block().slots[s].name, std::shared_ptr<Variable>(std::shared_ptr<void>(), &own_[s]));
  }
}

void Frame::BindKept(Kept& kept) {
  Tensor& tensor = own_[static_cast<std::size_t>(kept.place.slot)].As<Tensor>();
  std::byte*& planned = planned_[static_cast<std::size_t>(kept.index)];
  // Two owners, this tensor and kept.buffers: nothing else holds the buffer.
  if (tensor.initialized() && tensor.raw() == planned && tensor.buffer().use_count() == 2) {
    SyncWithFormerOwners(tensor.buffer());
    return;
  }
  tensor = kNoTensor;
  std::shared_ptr<Buffer> buffer;
  for (const auto& candidate : kept.buffers) {
    if (candidate.use_count() != 1) continue;
    SyncWithFormerOwners(candidate);
    buffer = candidate;
  }
  if (buffer == nullptr) {
    // Two buffers suffice for a caller that keeps only the last value. If a caller keeps all values, the
    // older buffers are left to it.
    constexpr std::size_t kBuffersMax = 2;
    if (kept.buffers.size() >= kBuffersMax) kept.buffers.erase(kept.buffers.begin());
    buffer = kept.place.sent ? AllocateToShow(kept.place.bytes) : Buffer::Allocate(kept.place.bytes);
    kept.buffers.push_back(buffer);
  }
  planned = buffer->data();
  const TensorDesc& type = specialisation_->type(kept.place.type);
  tensor = Tensor(type.dtype, type.shape, std::move(buffer), 0);
}

void Frame::BeginRun(std::span<const Feed> feeds) {
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const auto slot = static_cast<std::size_t>(block().feeds[i]);
    Tensor& tensor = own_[slot].As<Tensor>();
    // An op that writes a fed variable must not write into the caller's memory.
    if (block().slots[slot].written) {
      tensor = feeds[i].tensor.Clone();
    } else {
      tensor = feeds[i].tensor;
    }
  }
  for (const int slot : cleared_) own_[static_cast<std::size_t>(slot)].Clear();
  for (Kept& kept : kept_) BindKept(kept);
}

void Frame::EndRun() {
  for (const int feed : block().feeds) own_[static_cast<std::size_t>(feed)].As<Tensor>() = kNoTensor;
  for (const RowView& view : specialisation_->views)
    own_[static_cast<std::size_t>(view.slot)].As<Tensor>() = kNoTensor;
}

bool Frame::SharesWithFeed(const Variable& variable) const {
  const auto* tensor = variable.If<Tensor>();
  return tensor != nullptr && std::ranges::any_of(block().feeds, [&](int feed) {
           const auto* fed = own_[static_cast<std::size_t>(feed)].If<Tensor>();
           return fed != nullptr && fed->buffer() == tensor->buffer();
         });
}

Result<Variable> Frame::Fetch(int i) const {
  const int index = block().fetches[static_cast<std::size_t>(i)];
  const SlotInfo& slot = block().slots[static_cast<std::size_t>(index)];
  const Variable& variable = *variables_[static_cast<std::size_t>(index)];
  if (!variable.initialized()) {
    return FailedPrecondition("E-fetch-uninitialized", "fetch: ", slot.name, " has no value after the run");
  }
  if (slot.home != Home::kScope && !SharesWithFeed(variable)) return variable;
  Variable copy;
  if (const Tensor* tensor = variable.If<Tensor>()) {
    copy.As<Tensor>() = tensor->Clone();
  } else if (const auto* rows = variable.If<SelectedRows>()) {
    copy.As<SelectedRows>() = {rows->rows, rows->height, rows->value.Clone()};
  } else if (const auto* array = variable.If<TensorArray>()) {
    for (const Tensor& element : *array) copy.As<TensorArray>().push_back(element.Clone());
  }
  return copy;
}

bool Frame::IsInPlace(int slot) const {
  const int of = block().slots[static_cast<std::size_t>(slot)].view_of;
  if (of < 0) return false;
  const auto* part = variables_[static_cast<std::size_t>(slot)]->If<Tensor>();
  const auto* whole = variables_[static_cast<std::size_t>(of)]->If<Tensor>();
  return part != nullptr && whole != nullptr && part->initialized() && part->buffer() == whole->buffer();
}

bool Frame::IsAsPlanned(std::size_t step) const {
  const Step& planned = specialisation_->steps[step];
  if (!planned.has_kernel) return false;
  for (const InputSlot& input : specialisation_->InputsOf(step)) {
    const Variable& variable = *variables_[static_cast<std::size_t>(input.slot)];
    if (planned.may_lack_inputs && !variable.initialized()) continue;
    const TensorDesc& type = specialisation_->type(input.type);
    if (type.kind == VarKind::kTensor) {
      if (!IsTensorOf(variable, type)) return false;
    } else if (!MayStandFor(variable, type.kind)) {
      return false;
    }
  }
  return true;
}

StepRun Frame::Planned(std::size_t step) const {
  const Specialisation& plan = *specialisation_;
  return {.kernel = kernels_[step].get(),
          .outputs = plan.OutputsOf(step),
          .types = plan.types.data(),
          .workspaces = workspace_pointers_.data() + plan.FirstWorkspace(step),
          .lod_copies = plan.LodCopiesOf(step)};
}

Result<StepRun> Frame::Variant(std::size_t step, const Services& services) {
  PENSTOCK_ASSIGN_OR_RETURN(StepVariant* const variant,
                            variants_.For(*specialisation_, step, variables_.data(), services));
  GrowWorkspace(variant->workspace_bytes);
  variant_workspaces_.clear();
  for (const std::size_t offset : variant->workspaces)
    variant_workspaces_.push_back(memory_.workspace->data() + offset);
  return StepRun{.kernel = variant->kernel.get(),
                 .outputs = variant->outputs,
                 .types = variant->types.data(),
                 .workspaces = variant_workspaces_.data(),
                 .lod_copies = variant->lod_copies};
}

// The next frame that is lent the memory finds it large enough.
void Frame::GrowWorkspace(std::size_t bytes) {
  if (memory_.workspace->bytes() >= bytes) return;
  memory_.workspace = Buffer::Allocate(bytes);
  PlaceWorkspaces();
}

void Frame::PlaceWorkspaces() {
  workspace_pointers_.clear();
  for (const std::size_t offset : specialisation_->workspaces)
    workspace_pointers_.push_back(memory_.workspace->data() + offset);
}

void Frame::MakeOutputs(const StepRun& step) {
  for (const OutputSlot& output : step.outputs) {
    const TensorDesc& type = step.types[output.type];
    if (output.sent_before || !IsTensorOf(*variables_[static_cast<std::size_t>(output.slot)], type))
        [[unlikely]]
      Remake(output, type);
  }
}

// Called for the first step that writes the view: the viewed variable has its memory by then.
bool Frame::BindView(const OutputSlot& output, Tensor& tensor) const {
  const RowView& view = specialisation_->views[static_cast<std::size_t>(output.view)];
  const Tensor* whole = variables_[static_cast<std::size_t>(view.of)]->If<Tensor>();
  if (whole == nullptr || !Holds(*whole, specialisation_->type(view.whole))) return false;
  tensor.ViewRows(*whole, view.begin, view.end);
  return true;
}

// If a sender still reads the tensor, gives the variable other memory to write to: a copy if the step updates
// it in place.
void Frame::LeaveToSender(const OutputSlot& output, const TensorDesc& type, Tensor& tensor) const {
  if (!tensor.initialized()) return;
  const bool planned = output.place >= 0 && tensor.raw() == planned_[static_cast<std::size_t>(output.place)];
  // The owners without a sender: this tensor and, for planned memory, the arena or the list of buffers.
  if (tensor.buffer().use_count() <= (planned ? 2 : 1)) {
    return SyncWithFormerOwners(tensor.buffer());
  }
  tensor = output.in_place ? tensor.Clone() : Tensor(type.dtype, type.shape);
}

void Frame::Remake(const OutputSlot& output, const TensorDesc& info) {
  Tensor& tensor = variable(output.slot).As<Tensor>();
  if (output.sent_before) {
    LeaveToSender(output, info, tensor);
    if (IsTensorOf(variable(output.slot), info)) return;
  }
  if (output.view >= 0 && BindView(output, tensor)) return;
  const bool fits =
      tensor.initialized() && tensor.dtype() == info.dtype && tensor.count() == info.shape.Count();
  if (fits && (output.place < 0 || output.in_place)) {
    // Keeps the content: the op reads it, or it is a parameter, which is updated in place.
    if (tensor.shape() != info.shape) tensor = tensor.Reshaped(info.shape);
    return;
  }
  if (output.place < 0) {
    // A kernel that reads the old content resizes the tensor itself.
    if (!output.in_place) tensor.Reset(info.dtype, info.shape);
    return;
  }
  const Place& place = specialisation_->places[static_cast<std::size_t>(output.place)];
  std::shared_ptr<Buffer> buffer = memory_.arena;
  if (place.own_buffer) {
    const auto kept = std::ranges::find(kept_, output.place, &Kept::index);
    buffer =
        *std::ranges::find(kept->buffers, planned_[static_cast<std::size_t>(output.place)], &Buffer::data);
  }
  tensor = Tensor(info.dtype, info.shape, std::move(buffer), place.offset);
}

Status Frame::Explain(Status status, const Instruction& instruction) const {
  // The op at the place of a chain is its last one, which has other inputs.
  if (instruction.chain != nullptr)
    return ExplainOp(std::move(status), block().program, block().block, instruction.position);
  std::vector<TensorDesc> known(block().slots.size());
  for (const auto& args : instruction.inputs) {
    for (const int slot : args) {
      if (slot < 0) continue;
      const auto s = static_cast<std::size_t>(slot);
      known[s] = DescOf(*variables_[s], *block().slots[s].var);
    }
  }
  return ExplainOp(std::move(status), block().program, block().block, instruction.position,
                   FactsOf(block(), instruction, known));
}

}  // namespace penstock::exec
