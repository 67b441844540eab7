#include "operators/common/onednn.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

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

OnednnTeam::OnednnTeam(int threads) : before_(omp_get_max_threads()) {
  if (before_ != threads) omp_set_num_threads(threads);
}

OnednnTeam::~OnednnTeam() {
  if (omp_get_max_threads() != before_) omp_set_num_threads(before_);
}

Status OnednnFailed(const KernelSetup& k, const dnnl::error& error) {
  // Its descriptors hold extents and attributes in 32 bits, and refuse what does not fit.
  const bool refused = error.status == dnnl_invalid_arguments || error.status == dnnl_unimplemented;
  const std::string what = StrCat(k.op().type(), ": oneDNN made no primitive: ", error.what(), " (status ",
                                  static_cast<int>(error.status), ")");
  return refused ? InvalidArgument("E-onednn-refused", what) : InternalError("E-onednn", what);
}

bool OnednnSequence::NothingToDo(const KernelSetup& k) {
  bool empty = false;
  for (const Slot& slot : k.op().inputs()) {
    for (const Operand& operand : k.Inputs(slot.name))
      empty = empty || (operand && operand.shape.Count() == 0);
  }
  if (!empty) return false;
  for (const Slot& slot : k.op().outputs()) {
    for (const Operand& operand : k.Outputs(slot.name)) {
      if (operand) cleared_.push_back(operand);
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
  threads_ = k.threads();
  if (!stream_) stream_ = dnnl::stream(OnednnEngine());
  Step step{std::move(primitive), {}};
  for (const auto& [argument, id] : arguments) step.arguments.push_back({argument, At(id).get()});
  if (scratchpad.get_size() > 0) {
    step.arguments.push_back({DNNL_ARG_SCRATCHPAD, At(Scratch(k, scratchpad)).get()});
  }
  steps_.push_back(std::move(step));
}

Status OnednnSequence::Run(KernelRun& k) {
  for (const Operand& operand : cleared_) {
    auto& output = k[operand];
    if (output.bytes() > 0) std::memset(output.raw(), 0, output.bytes());
  }
  if (steps_.empty()) return OkStatus();
  const OnednnTeam team(threads_);
  for (Memory& m : memories_) {
    std::byte* const base = m.operand ? k[m.operand].raw() : k.Workspace(m.workspace);
    void* const address = base + m.offset_bytes;
    if (address == m.bound) continue;
    if (dnnl_memory_set_data_handle(m.memory.get(), address) != dnnl_success) {
      return InternalError("E-onednn", "oneDNN refused the memory of ", m.operand.name);
    }
    m.bound = address;
  }
  // The C interface: the C++ one builds a map and a vector for each call.
  for (const Step& step : steps_) {
    const dnnl_status_t status = dnnl_primitive_execute(
        step.primitive.get(), stream_.get(), static_cast<int>(step.arguments.size()), step.arguments.data());
    if (status != dnnl_success) {
      return InternalError("E-onednn", "a oneDNN primitive failed (status ", static_cast<int>(status), ")");
    }
  }
  if (dnnl_stream_wait(stream_.get()) != dnnl_success)
    return InternalError("E-onednn", "oneDNN's stream failed");
  return OkStatus();
}

}  // namespace penstock
