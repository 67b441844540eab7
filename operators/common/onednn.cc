#include "operators/common/onednn.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "operators/common/parallel.h"

namespace penstock {

const dnnl::engine& OnednnEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::primitive_attr OnednnAttr() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

dnnl::memory::desc OnednnPlain(const dnnl::memory::dims& dims) {
  dnnl::memory::dims strides(dims.size());
  dnnl::memory::dim stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<dnnl::memory::dim>(dims[i], 1);
  }
  return OnednnStrided(dims, strides);
}

dnnl::memory::desc OnednnStrided(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides) {
  return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, strides);
}

dnnl::memory::desc OnednnAny(const dnnl::memory::dims& dims) {
  return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
}

OnednnTeam::OnednnTeam(int threads) : before_(omp_get_max_threads()), varies_(omp_get_dynamic() != 0) {
  if (varies_) omp_set_dynamic(0);
  threads = std::min(threads, omp_get_thread_limit());
  if (before_ != threads) omp_set_num_threads(threads);
}

OnednnTeam::~OnednnTeam() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
  if (varies_) omp_set_dynamic(1);
}

namespace {

Status Executed(dnnl_status_t status) {
  if (status == dnnl_success) return OkStatus();
  return InternalError("E-onednn", "a oneDNN primitive failed (status ", static_cast<int>(status), ")");
}

}  // namespace

Status OnednnFailed(const KernelSetup& k, const dnnl::error& error) {
  // Its descriptors hold extents and attributes in 32 bits, and refuse what does not fit.
  const bool refused = error.status == dnnl_invalid_arguments || error.status == dnnl_unimplemented;
  const std::string what = StrCat(k.op().type(), ": oneDNN made no primitive: ", error.what(), " (status ",
                                  static_cast<int>(error.status), ")");
  return refused ? InvalidArgument("E-onednn-refused", what) : InternalError("E-onednn", what);
}

Shares DivideIntoShares(Dim count, double item_ns, Dim granule, int threads, int per_thread) {
  const LoopChunks divided = DivideLoop(count, item_ns, granule, threads);
  const Dim granules = (count + granule - 1) / granule;
  const Dim most = std::min<Dim>(static_cast<Dim>(divided.threads) * per_thread, granules);
  if (divided.chunks == 1 || most <= 1)
    return {1, count,
            threads <= 1 || DivideLoop(2, item_ns * static_cast<double>(count) / 2, 1, 2).chunks == 1};
  Shares shares;
  shares.items = (granules + most - 1) / most * granule;
  shares.count = static_cast<int>((count + shares.items - 1) / shares.items);
  return shares;
}

bool OnednnSequence::NothingToDo(const KernelSetup& k) {
  bool empty = false;
  for (const Slot& slot : k.op().inputs()) {
    for (const Argument& argument : k.Inputs(slot.name))
      empty = empty || (argument && argument.shape.Count() == 0);
  }
  if (!empty) return false;
  for (const Slot& slot : k.op().outputs()) {
    for (const Argument& argument : k.Outputs(slot.name)) {
      if (argument) cleared_.push_back(argument);
    }
  }
  return true;
}

OnednnSequence::MemoryId OnednnSequence::AddMemory(const dnnl::memory::desc& desc, const Operand& operand,
                                                   WorkspaceId workspace, std::size_t offset_bytes) {
  memories_.push_back(
      {dnnl::memory(desc, OnednnEngine(), DNNL_MEMORY_NONE), operand, workspace, offset_bytes, nullptr});
  return static_cast<MemoryId>(memories_.size()) - 1;
}

OnednnSequence::MemoryId OnednnSequence::Tensor(const Operand& operand, const dnnl::memory::desc& desc,
                                                std::size_t offset_bytes) {
  return AddMemory(desc, operand, {}, offset_bytes);
}

OnednnSequence::MemoryId OnednnSequence::Scratch(KernelSetup& k, const dnnl::memory::desc& desc) {
  return AddMemory(desc, {}, k.Workspace(desc.get_size()), 0);
}

OnednnSequence::MemoryId OnednnSequence::InWorkspace(WorkspaceId workspace, const dnnl::memory::desc& desc) {
  return AddMemory(desc, {}, workspace, 0);
}

OnednnSequence::MemoryId OnednnSequence::Part(MemoryId whole, const dnnl::memory::desc& desc,
                                              std::size_t offset_bytes) {
  const Memory& of = memories_[static_cast<std::size_t>(whole)];
  const Operand operand = of.operand;  // AddMemory moves `of`
  return AddMemory(desc, operand, of.workspace, of.offset_bytes + offset_bytes);
}

OnednnSequence::MemoryId OnednnSequence::Reordered(KernelSetup& k, MemoryId from,
                                                   const dnnl::memory::desc& wanted) {
  if (At(from).get_desc() == wanted) return from;
  const MemoryId to = Scratch(k, wanted);
  AddReorder(k, from, to);
  return to;
}

OnednnSequence::MemoryId OnednnSequence::Staged(KernelSetup& k, MemoryId to,
                                                const dnnl::memory::desc& wanted) {
  return At(to).get_desc() == wanted ? to : Scratch(k, wanted);
}

void OnednnSequence::FlushTo(KernelSetup& k, MemoryId staged, MemoryId to) {
  if (staged != to) AddReorder(k, staged, to);
}

void OnednnSequence::AddReorder(KernelSetup& k, MemoryId from, MemoryId to) {
  const dnnl::reorder::primitive_desc pd(OnednnEngine(), At(from).get_desc(), OnednnEngine(),
                                         At(to).get_desc(), OnednnAttr());
  Add(k, dnnl::reorder(pd), pd.scratchpad_desc(), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

void OnednnSequence::Add(KernelSetup& k, dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
                         const std::vector<std::pair<int, MemoryId>>& arguments) {
  Step step{.primitive = std::move(primitive)};
  for (const auto& [argument, id] : arguments) step.arguments.push_back({argument, At(id).get()});
  if (scratchpad.get_size() > 0) {
    step.arguments.push_back({DNNL_ARG_SCRATCHPAD, At(Scratch(k, scratchpad)).get()});
  }
  Append(std::move(step));
}

void OnednnSequence::AddSum(std::vector<MemoryId> parts) { Append({.summed = std::move(parts)}); }

void OnednnSequence::AddValues(MemoryId to, MemoryId values, Dim rows, Dim points) {
  Append({.summed = {to, values}, .rows = rows, .points = points});
}

void OnednnSequence::Append(Step step) {
  step.threads = omp_get_max_threads();
  step.share = share_;
  shares_ = std::max(shares_, share_ + 1);
  while (static_cast<int>(streams_.size()) < std::max(shares_, 1)) streams_.emplace_back(OnednnEngine());
  steps_.push_back(std::move(step));
}

Status OnednnSequence::Bind(KernelRun& k) {
  for (Memory& m : memories_) {
    std::byte* const base = m.operand ? k[m.operand].raw() : k.Workspace(m.workspace);
    void* const address = base + m.offset_bytes;
    if (address == m.bound) continue;
    if (dnnl_memory_set_data_handle(m.memory.get(), address) != dnnl_success) {
      return InternalError("E-onednn", "oneDNN refused the memory of operand ", m.operand.index);
    }
    m.bound = address;
  }
  return OkStatus();
}

float* OnednnSequence::FloatsOf(MemoryId id) const {
  return static_cast<float*>(memories_[static_cast<std::size_t>(id)].bound);
}

void OnednnSequence::Sum(const std::vector<MemoryId>& parts) const {
  const auto count = static_cast<Dim>(At(parts[0]).get_desc().get_size() / sizeof(float));
  float* const to = FloatsOf(parts[0]);
  ForElements(count, StreamNs<float>(static_cast<int>(parts.size()) + 1), [&](Dim begin, Dim end) {
    for (std::size_t p = 1; p < parts.size(); ++p) {
      const float* const from = FloatsOf(parts[p]);
      for (Dim i = begin; i < end; ++i) to[i] += from[i];
    }
  });
}

void OnednnSequence::SumValues(const Step& step) const {
  const auto count = static_cast<Dim>(At(step.summed[1]).get_desc().get_size() / sizeof(float));
  const float* const values = FloatsOf(step.summed[1]);
  const Dim of_row = count * step.points;
  ForRows(step.rows, StreamNs<float>(2) * static_cast<double>(of_row), [&](Dim begin, Dim end) {
    float* to = FloatsOf(step.summed[0]) + begin * of_row;
    for (Dim r = begin; r < end; ++r) {
      for (Dim c = 0; step.points == 1 && c < count; ++c) to[c] += values[c];
      for (Dim c = 0; step.points > 1 && c < count; ++c) {
        const float value = values[c];
        for (Dim p = 0; p < step.points; ++p) to[c * step.points + p] += value;
      }
      to += of_row;
    }
  });
}

// The C interface: the C++ one builds a map and a vector for each call.
dnnl_status_t OnednnSequence::Execute(const Step& step, const dnnl::stream& stream) const {
  if (!step.primitive) {
    step.rows > 0 ? SumValues(step) : Sum(step.summed);
    return dnnl_success;
  }
  const OnednnTeam team(step.threads);
  return dnnl_primitive_execute(step.primitive.get(), stream.get(), static_cast<int>(step.arguments.size()),
                                step.arguments.data());
}

// Runs the steps [first, end), all of which belong to shares.
Status OnednnSequence::RunShares(std::size_t first, std::size_t end) {
  std::atomic<dnnl_status_t> failed{dnnl_success};
  ComputePool::OfThisProcess().ForEach(shares_, ComputeTeam::threads(), [&](int share) {
    for (std::size_t i = first; i < end; ++i) {
      if (steps_[i].share != share) continue;
      const dnnl_status_t status = Execute(steps_[i], streams_[static_cast<std::size_t>(share)]);
      if (status != dnnl_success) failed.store(status);
    }
  });
  return Executed(failed.load());
}

Status OnednnSequence::Run(KernelRun& k) {
  for (const Operand& operand : cleared_) {
    auto& output = k[operand];
    if (output.bytes() > 0) std::memset(output.raw(), 0, output.bytes());
  }
  if (steps_.empty()) return OkStatus();
  PENSTOCK_RETURN_IF_ERROR(Bind(k));
  for (std::size_t i = 0; i < steps_.size();) {
    if (steps_[i].share == kWhole) {
      PENSTOCK_RETURN_IF_ERROR(Executed(Execute(steps_[i++], streams_.front())));
      continue;
    }
    std::size_t end = i;
    while (end < steps_.size() && steps_[end].share != kWhole) ++end;
    PENSTOCK_RETURN_IF_ERROR(RunShares(i, end));
    i = end;
  }
  for (const dnnl::stream& stream : streams_) {
    if (dnnl_stream_wait(stream.get()) != dnnl_success)
      return InternalError("E-onednn", "oneDNN's stream failed");
  }
  return OkStatus();
}

}  // namespace penstock
