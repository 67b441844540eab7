// Copies for a save what updates keep from one step to the next: the param, its optimizer state, and the
// counters of the learning-rate block, or the step that it computes from those of the trainers.
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

#include "executor/pserver/memory/chunk_store.h"
#include "framework/ir/mentions.h"

namespace penstock::pserver {
namespace {

// Fresh memory is made page by page, which takes longer than a copy into it.
void AskForHugePages(const Tensor& tensor) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.raw());
  const std::uintptr_t from = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t to = (begin + tensor.bytes()) / kHugePage * kHugePage;
  if (from < to) ::madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
}

}  // namespace

// The variables that a block reads and later writes: their values last from one run to the next.
std::vector<std::string> ChunkStore::KeptBy(const Program& program, int block) {
  std::set<std::string> read, written;
  std::vector<std::string> kept;
  if (block < 0) return kept;
  for (const OpEntry& entry : program.block(block).ops()) {
    for (const std::string& name : entry.op->InputNames()) {
      if (!written.contains(name)) read.insert(name);
    }
    for (const std::string& name : entry.op->OutputNames()) {
      if (written.insert(name).second && read.contains(name)) kept.push_back(name);
    }
  }
  return kept;
}

// The variables that a block computes from the trainers' counters of steps: the step of the schedule.
std::vector<std::string> ChunkStore::CountedBy(const Program& program, int block,
                                               const std::vector<std::string>& counters) {
  std::vector<std::string> counted;
  if (block < 0) return counted;
  for (const OpEntry& entry : program.block(block).ops()) {
    const bool counts = std::any_of(counters.begin(), counters.end(),
                                    [&](const std::string& counter) { return Reads(*entry.op, counter); });
    if (!counts) continue;
    for (std::string& name : entry.op->OutputNames()) counted.push_back(std::move(name));
  }
  return counted;
}

int ChunkStore::FindUpdated(const std::string& name) const {
  const auto found = std::find_if(params_.begin(), params_.end(), [&](const Param& param) {
    return !param.start && !param.by_id && param.piece.name == name;
  });
  return found == params_.end() ? -1 : static_cast<int>(found.index());
}

std::vector<std::string> ChunkStore::KeptNames(int param) const {
  std::vector<std::string> names;
  if (param < 0) {
    for (auto& [name, value] : CopyShared()) names.push_back(std::move(name));
    return names;
  }
  const Param& kept = params_[static_cast<std::size_t>(param)];
  if (kept.start) return names;
  names.push_back(kept.piece.name);
  for (const std::string& name : kept.state) {
    if (name != kept.piece.name) names.push_back(name);
  }
  names.insert(names.end(), kept.constants.begin(), kept.constants.end());
  const table::RowTable* const table = kept.chunks.front()->table.get();
  for (std::size_t column = 1; table != nullptr && column < table->column_count(); ++column)
    names.push_back(table->name(column));
  return names;
}

void ChunkStore::CopyCut(int param, int chunk) {
  CopyKey(At(param, chunk));
  if (const std::shared_ptr<StateCopy> copy = std::exchange(At(param, chunk).cut, nullptr))
    CopyState(param, chunk, *copy);
}

std::shared_ptr<StateCopy> ChunkStore::BeginStateCopy(int param) const {
  const Param& saved = params_[static_cast<std::size_t>(param)];
  auto copy = std::make_shared<StateCopy>();
  std::vector<std::string> names = saved.start ? std::vector{saved.piece.name} : KeptNames(param);
  for (const std::string& name : names) {
    const Tensor& whole = *scope_.Find(name)->If<Tensor>();
    copy->tensors.emplace_back(name, Tensor(whole.dtype(), whole.shape()));
    AskForHugePages(copy->tensors.back().second);
  }
  copy->constants = saved.constants.size();
  copy->chunks_left = static_cast<int>(saved.chunks.size());
  return copy;
}

void ChunkStore::CopyState(int param, int chunk, StateCopy& copy) const {
  const Param& saved = params_[static_cast<std::size_t>(param)];
  for (auto& [name, to] : copy.tensors) {
    const Tensor& whole = *scope_.Find(name)->If<Tensor>();
    if (whole.shape() == saved.piece.shape) {
      const std::size_t bytes = At(param, chunk).param.bytes();
      const std::size_t begin = saved.chunks.front()->param.bytes() * static_cast<std::size_t>(chunk);
      std::memcpy(to.raw() + begin, whole.raw() + begin, bytes);
    } else if (chunk == 0) {  // the chunks' copies are equal
      std::memcpy(to.raw(), whole.raw(), whole.bytes());
    }
  }
}

void ChunkStore::CopyRates(StateCopy& copy) const {
  std::vector<std::string> names = KeptBy(program_, facts_.lr_block);
  for (std::string& name : CountedBy(program_, facts_.lr_block, facts_.counters))
    names.push_back(std::move(name));
  for (const std::string& name : names) {
    const Variable* held = scope_.Find(name);
    const Tensor* tensor = held == nullptr ? nullptr : held->If<Tensor>();
    if (tensor != nullptr && tensor->initialized()) copy.tensors.emplace_back(name, tensor->Clone());
  }
}

NamedTensors ChunkStore::CopyShared() const {
  NamedTensors kept;
  std::vector<std::string> names = facts_.counters;  // of the trainers' steps; CountStep writes them
  for (const int block : {facts_.lr_block, facts_.shared_block}) {
    for (std::string& name : KeptBy(program_, block)) names.push_back(std::move(name));
  }
  for (const std::string& name : names) {
    const Variable* held = scope_.Find(name);
    const Tensor* tensor = held == nullptr ? nullptr : held->If<Tensor>();
    if (tensor != nullptr && tensor->initialized()) kept.emplace_back(name, tensor->Clone());
  }
  return kept;
}

Status ChunkStore::WriteState(Disk& disk, const std::string& file, const NamedTensors& tensors) {
  PENSTOCK_RETURN_IF_ERROR(disk.MakeFolder(FolderOf(file)));
  return ReplaceFile(disk, file, checkpoint::WriteNamed(tensors));
}

}  // namespace penstock::pserver
