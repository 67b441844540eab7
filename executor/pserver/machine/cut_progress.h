// Which steps of a job are saved in checkpoints, and how far the one that is being made is. Each chunk is
// copied when it has been updated for the step's last time: the same step on all servers, without a
// coordinator. One is made at a time: a chunk whose next update belongs to the next one waits until this one
// is written.
//
//   CutProgress cut(5, 0);
//   cut.StepAt(4);  cut.StepAt(5);        // nullopt, 5
//   cut.Begin(5);  cut.End();             // a chunk has reached step 5; its copy is there
//   cut.ReachedByAll();                   // so have all chunks
//   cut.whole();                          // true: it can be written
//
// Versions and steps differ by the steps before this start of the job. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace penstock::pserver {

class CutProgress {
 public:
  // `every`: 0 makes none. `first_step`: complete steps at version 0.
  CutProgress(std::uint64_t every, std::uint64_t first_step) : every_(every), first_step_(first_step) {}

  // The step whose checkpoint has the chunk in this version.
  std::optional<std::uint64_t> StepAt(std::uint64_t version) const {
    const std::uint64_t step = first_step_ + version;
    const bool due =
        every_ > 0 && version > 0 && (step % every_ == 0 || planned_ == version || agreed_ == version);
    return due ? std::optional(step) : std::nullopt;
  }
  bool makes_any() const { return every_ > 0; }
  bool open() const { return open_.has_value(); }  // one is being made
  // Whether a version from `first` to `last` is one of the interval.
  bool HasOneIn(std::uint64_t first, std::uint64_t last) const {
    return (first_step_ + last) / every_ > (first_step_ + first - 1) / every_;
  }
  // Adds one ahead of the interval, and returns its version. Of several, the first is made.
  std::uint64_t Plan(std::uint64_t version) {
    planned_ = std::min(planned_.value_or(version), version);
    return *planned_;
  }
  // Adds one that all servers make, ahead of the interval.
  void Agree(std::uint64_t version) { agreed_ = version; }
  // Whether an update that makes this version must wait.
  bool Delays(std::uint64_t version) const {
    if (limit_ && version > *limit_) return true;
    const std::optional<std::uint64_t> step = StepAt(version);
    return open_ && step && *step != open_;
  }
  // No update beyond this version may begin: the job is about to stop, or the servers agree on a version.
  void Limit(std::optional<std::uint64_t> version) { limit_ = version; }
  std::uint64_t StepOf(std::uint64_t version) const { return first_step_ + version; }
  void Begin(std::uint64_t step) {
    open_ = step;
    ++copies_left_;
  }
  void End() { --copies_left_; }
  void ReachedByAll() { reached_by_all_ = true; }
  // Whether all copies are there.
  bool whole() const { return open_ && reached_by_all_ && copies_left_ == 0; }
  std::uint64_t step() const { return open_.value_or(0); }
  void Close() {
    if (planned_ && first_step_ + *planned_ <= step()) planned_.reset();
    if (agreed_ && first_step_ + *agreed_ <= step()) agreed_.reset();
    open_.reset();
    reached_by_all_ = false;
  }

 private:
  const std::uint64_t every_, first_step_;
  std::optional<std::uint64_t> open_;     // the step of the one that is being made
  std::optional<std::uint64_t> planned_;  // a version ahead of the interval
  std::optional<std::uint64_t> agreed_;   // likewise
  std::optional<std::uint64_t> limit_;    // a version
  std::size_t copies_left_ = 0;
  bool reached_by_all_ = false;
};

}  // namespace penstock::pserver
