#include "executor/pserver/job_notes.h"

#include <utility>

#include "executor/protocol/payload_bytes.h"
#include "framework/base/strings.h"

namespace penstock::pserver {
namespace {

using observe::EventKind;

constexpr std::size_t kOpenStepsMax = 64;  // steps that some trainers have ended and others have not

}  // namespace

JobNotes::JobNotes(observe::Observer* observer, int trainers, const std::vector<MachineConfig::Param>& params,
                   bool is_sync)
    : observer_(observer), is_sync_(is_sync), steps_(static_cast<std::size_t>(trainers), 0) {
  for (int t = 0; t < trainers; ++t) trainers_.emplace_back(observer, StrCat("trainer ", t));
  for (const MachineConfig::Param& param : params) AddParam(param);
}

void JobNotes::AddParam(const MachineConfig::Param& param) {
  rows_.emplace_back().resize(param.bytes_of_chunks.size());
  names_.emplace_back() = observer_ == nullptr ? 0 : observer_->recorder().Intern(param.name);
  std::vector<Chunk>& chunks = chunks_.emplace_back();
  if (observer_ != nullptr && !is_sync_)
    chunks.resize(param.bytes_of_chunks.size(), Chunk{.asked = std::vector<std::uint64_t>(steps_.size(), 0)});
}

void JobNotes::Came(int trainer, std::uint64_t step) const {
  At(trainer).Connected();
  At(trainer).Record(EventKind::kPeerCame, step);
}

void JobNotes::Left(int trainer, std::uint64_t step) const { At(trainer).Record(EventKind::kPeerLeft, step); }

void JobNotes::Received(int trainer, const protocol::Event& event) const {
  At(trainer).Received(protocol::PayloadBytes(event));
}

void JobNotes::Sent(int trainer, std::uint64_t bytes) const { At(trainer).Sent(bytes); }

void JobNotes::Lacks(int trainer, std::uint64_t step, int param) const {
  At(trainer).Record(EventKind::kWaitsFor, step, Name(param));
}

// A step that completed trainers never end is forgotten once too many steps are open.
void JobNotes::StepEnded(int trainer, std::uint64_t step, Nanoseconds now) {
  std::uint64_t& ended = steps_[static_cast<std::size_t>(trainer)];
  if (observer_ == nullptr || step < ended) return;  // a repeat
  ended = step + 1;
  At(trainer).Record(EventKind::kStepEnded, step);
  observer_->SetSteps(ended);
  if (!is_sync_) return;
  EndOfStep& end = ends_[step];
  const Nanoseconds before = std::exchange(end.last, now);
  if (++end.trainers == static_cast<int>(trainers_.size())) {
    if (end.trainers > 1) At(trainer).WaitedFor(now - before);
    ends_.erase(step);
  }
  if (ends_.size() > kOpenStepsMax) ends_.erase(ends_.begin());
}

void JobNotes::Taken(const MergeAction& merge) {
  if (observer_ == nullptr) return;
  std::uint64_t bytes = 0;
  for (const Payload& part : merge.parts) bytes += part.size();
  At(merge.trainer).Record(EventKind::kGradientTaken, merge.step, Name(merge.param), bytes);
  if (!is_sync_ && !merge.initial) At(ChunkId{merge.param, merge.chunk}).taken = merge.trainer;
}

void JobNotes::Started(const RunAction& run) {
  if (observer_ == nullptr || is_sync_ || run.param < 0) return;
  Chunk& chunk = At(ChunkId{run.param, run.chunk});
  chunk.updates = run.step + 1;
  const std::uint64_t asked = chunk.asked[static_cast<std::size_t>(chunk.taken)];
  if (asked > 0) observer_->CountStaleness(run.step - (asked - 1));
}

void JobNotes::Answered(int trainer, ChunkId at) {
  if (observer_ == nullptr || is_sync_) return;
  Chunk& chunk = At(at);
  chunk.asked[static_cast<std::size_t>(trainer)] = chunk.updates + 1;
}

void JobNotes::Ran(const RunAction& run) const {
  if (observer_ == nullptr || run.param < 0) return;
  observer_->CountUpdate();
  observer_->recorder().Record(EventKind::kBlockRun, run.step, 0, Name(run.param));
}

// Numbers of now may have become smaller: then the unsigned difference wraps, and so does the sum.
void JobNotes::Rows(ChunkId at, const table::RowCounts& counts, const table::ColdCounts& cold) {
  if (observer_ == nullptr) return;
  OfShard& noted = rows_[static_cast<std::size_t>(at.param)][static_cast<std::size_t>(at.chunk)];
  observer_->CountRows({.entered = counts.entered - noted.rows.entered,
                        .rejected = counts.rejected - noted.rows.rejected,
                        .evicted = counts.evicted - noted.rows.evicted});
  observer_->CountColdRows({.hot = cold.hot - noted.cold.hot,
                            .cold = cold.cold - noted.cold.cold,
                            .file_bytes = cold.file_bytes - noted.cold.file_bytes,
                            .asked = cold.asked - noted.cold.asked,
                            .fetched = cold.fetched - noted.cold.fetched,
                            .written = cold.written - noted.cold.written});
  noted = {.rows = counts, .cold = cold};
}

void JobNotes::Published(int trainer, ChunkId at, std::uint64_t version, std::uint64_t bytes) const {
  At(trainer).Sent(bytes);
  At(trainer).Record(EventKind::kPublished, version, Name(at.param), bytes);
}

}  // namespace penstock::pserver
