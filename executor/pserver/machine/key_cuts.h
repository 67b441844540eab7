// Cuts of keys: a checkpoint has each key after as many rounds as the workers had pushed it at one point of
// their program. A worker says so before its first push behind that point, so a server knows it before it
// can update a key beyond the cut.
//
//   KeyCuts cuts(2, 0);
//   cuts.Announce(0, 5, {{0, 5}, {1, 3}});    // worker 0 has pushed key 0 five times, key 1 three times
//   cuts.RoundOf(0);                          // 5: of the cut of name 5, which is next()
//   cuts.Copied({0, 0});                      // the chunk is in round 5, and copied
//   cuts.HaveAllCome(gone);                   // false: worker 1 is not there yet
//   cuts.Delays(0, 5);                        // false, until some worker announces one behind it
//
// The workers of a job run the same program; where they name different numbers, the least counts. A worker
// that leaves a name out has its numbers of the next one. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "executor/pserver/machine/actions.h"

namespace penstock::pserver {

class KeyCuts {
 public:
  using Pushes = std::map<int, std::uint64_t>;  // by param
  // `last`: the name of the checkpoint with which the server began.
  KeyCuts(int workers, std::uint64_t last) : last_(last), said_(static_cast<std::size_t>(workers)) {}

  // One that is there, or that was written, changes nothing.
  void Announce(int worker, std::uint64_t name, Pushes pushes) {
    if (name > last_) said_[static_cast<std::size_t>(worker)].emplace(name, std::move(pushes));
  }
  bool Knows(int worker, std::uint64_t name) const {
    return name <= last_ || said_[static_cast<std::size_t>(worker)].contains(name);
  }
  std::uint64_t last() const { return last_; }  // written
  // The one that is made next, or is being made: some worker has come to it.
  std::optional<std::uint64_t> next() const { return After(last_, made_limit_); }
  // None beyond this name is begun (`begins`), or will ever be (`is_final`: nothing waits for one).
  void Limit(std::uint64_t name, bool is_final) {
    made_limit_ = name;
    if (is_final) named_limit_ = name;
  }
  // The round in which next() has the key; nullopt: it does not have it, as far as workers have come.
  std::optional<std::uint64_t> RoundOf(int param) const {
    const std::optional<std::uint64_t> name = next();
    return name ? RoundIn(*name, param) : std::nullopt;
  }
  void Copied(ChunkId at) { copied_.insert(at); }
  bool is_copied(ChunkId at) const { return copied_.contains(at); }
  // Whether all workers but those that are gone have come to next().
  bool HaveAllCome(const std::function<bool(int)>& gone) const {
    const std::optional<std::uint64_t> name = next();
    if (!name) return false;
    for (std::size_t w = 0; w < said_.size(); ++w)
      if (At(w, *name) == nullptr && !gone(static_cast<int>(w))) return false;
    return true;
  }
  // Whether the update of the key after this round waits until next() is written.
  bool Delays(int param, std::uint64_t round) const {
    const std::uint64_t from = next().value_or(last_);
    for (auto name = After(from, named_limit_); name; name = After(*name, named_limit_))
      if (RoundIn(*name, param) == round) return true;
    return false;
  }
  // next() is written.
  void Close() {
    last_ = next().value_or(last_);
    copied_.clear();
    for (auto& names : said_) names.erase(names.begin(), names.upper_bound(last_));
  }

 private:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::optional<std::uint64_t> After(std::uint64_t name, std::uint64_t limit) const {
    std::optional<std::uint64_t> least;
    for (const auto& names : said_) {
      const auto found = names.upper_bound(name);
      if (found != names.end() && found->first <= limit)
        least = std::min(least.value_or(kNone), found->first);
    }
    return least;
  }
  const Pushes* At(std::size_t worker, std::uint64_t name) const {
    const auto found = said_[worker].lower_bound(name);
    return found == said_[worker].end() ? nullptr : &found->second;
  }
  std::optional<std::uint64_t> RoundIn(std::uint64_t name, int param) const {
    std::optional<std::uint64_t> least;
    for (std::size_t w = 0; w < said_.size(); ++w) {
      const Pushes* const pushes = At(w, name);
      if (pushes == nullptr) continue;
      const auto found = pushes->find(param);
      if (found == pushes->end()) return std::nullopt;
      least = std::min(least.value_or(found->second), found->second);
    }
    return least;
  }

  std::uint64_t last_, made_limit_ = kNone, named_limit_ = kNone;
  std::vector<std::map<std::uint64_t, Pushes>> said_;  // by worker, then by name
  std::set<ChunkId> copied_;                           // for next()
};

}  // namespace penstock::pserver
