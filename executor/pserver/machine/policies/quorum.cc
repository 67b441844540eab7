#include "executor/pserver/machine/policies/quorum.h"

#include <algorithm>

namespace penstock::pserver {

Quorum::Quorum(int trainers, int backups, std::size_t chunks)
    : backups_(backups), chunks_(chunks), trainers_(static_cast<std::size_t>(trainers)) {}

bool Quorum::Came(int trainer, std::uint64_t step) {
  Trainer& from = At(trainer);
  const std::uint64_t ahead = step - from.here;
  if (from.chunks.size() <= ahead) from.chunks.resize(ahead + 1, 0);
  ++from.chunks[ahead];
  const std::uint64_t before = from.here;
  while (!from.chunks.empty() && from.chunks.front() == chunks_) EndStep(trainer);
  return from.here > before;
}

void Quorum::EndStep(int trainer) {
  Trainer& from = At(trainer);
  from.chunks.pop_front();
  const std::uint64_t step = from.here++;
  if (step < decided_) {
    ++from.late;
  } else {
    sets_[step].push_back(trainer);
    Decide();
  }
}

void Quorum::Left(int trainer) {
  At(trainer).left = true;
  Decide();
}

bool Quorum::IsOf(int trainer, std::uint64_t version) const {
  const auto set = sets_.find(version);
  return set != sets_.end() && std::count(set->second.begin(), set->second.end(), trainer) > 0;
}

std::vector<int> Quorum::Missing() const {
  std::vector<int> missing;
  for (int t = 0; t < static_cast<int>(trainers_.size()); ++t) {
    if (!IsOf(t, decided_) && !At(t).left) missing.push_back(t);
  }
  return missing;
}

void Quorum::Decide() {
  for (auto set = sets_.find(decided_); set != sets_.end(); set = sets_.find(decided_)) {
    const std::size_t enough = trainers_.size() - static_cast<std::size_t>(backups_);
    if (set->second.size() < enough && !Missing().empty()) return;
    std::sort(set->second.begin(), set->second.end());
    ++decided_;
  }
}

// Of a forgotten version, only late gradients are left.
Quorum::Fate Quorum::FateOf(int trainer, std::uint64_t step) const {
  if (step >= At(trainer).here || step >= decided_) return Fate::kOpen;
  return IsOf(trainer, step) ? Fate::kMerged : Fate::kLate;
}

void Quorum::Forget(std::uint64_t version) { sets_.erase(sets_.begin(), sets_.lower_bound(version)); }

}  // namespace penstock::pserver
