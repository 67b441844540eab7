#include "executor/process/place_rings.h"

#include <utility>

#include "executor/collective/arena/arena.h"
#include "executor/collective/arena/threads.h"
#include "framework/base/strings.h"

namespace penstock::process {

// The groups that places have not taken yet.
class PlaceRings::Shared {
 public:
  explicit Shared(int places) : places_(places) {}

  // The first place that uses a ring makes the groups of all places.
  Result<std::unique_ptr<CollectiveGroup>> Take(int ring, int place) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = groups_.try_emplace(ring);
    if (is_new) {
      Result<std::vector<std::unique_ptr<CollectiveGroup>>> made = collective::MakeThreadGroups(places_);
      if (!made.ok()) {
        groups_.erase(at);
        return made.status();
      }
      at->second = *std::move(made);
    }
    return std::move(at->second[static_cast<std::size_t>(place)]);
  }

 private:
  const int places_;
  std::mutex mutex_;
  std::map<int, std::vector<std::unique_ptr<CollectiveGroup>>> groups_;  // by ring, then place
};

PlaceRings::PlaceRings(std::shared_ptr<Shared> shared, int place)
    : shared_(std::move(shared)), place_(place) {}

PlaceRings::~PlaceRings() = default;

Status PlaceRings::Join(const std::vector<std::string>& addresses, int) {
  return FailedPrecondition("E-collective-joined", "place ", place_,
                            " of this process is no rank of a job: it cannot join ",
                            penstock::Join(addresses, ","), "; a program that joins ranks runs on one place");
}

Status PlaceRings::MakeRing(int ring, int) { return Ring(ring).status(); }

Status PlaceRings::MakeOwnRing(int ring) {
  const std::lock_guard lock(mutex_);
  if (groups_.contains(ring)) return OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<CollectiveGroup>> group,
                            collective::MakeThreadGroups(1));
  groups_.emplace(ring, std::move(group.front()));
  return OkStatus();
}

// One process made the programs of all places, so they need not compare them.
Status PlaceRings::Begin(const Program&, int, std::string_view) { return OkStatus(); }

Result<CollectiveGroup*> PlaceRings::Ring(int ring) {
  const std::lock_guard lock(mutex_);
  PENSTOCK_RETURN_IF_ERROR(aborted_);
  if (const auto at = groups_.find(ring); at != groups_.end()) return at->second.get();
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<CollectiveGroup> group, shared_->Take(ring, place_));
  return groups_.emplace(ring, std::move(group)).first->second.get();
}

void PlaceRings::AbortAll(const Status& why) {
  const std::lock_guard lock(mutex_);
  if (aborted_.ok()) aborted_ = why;
  for (const auto& [ring, group] : groups_) group->Abort(why);
}

void PlaceRings::AbortRing(int ring, const Status& why) {
  const std::lock_guard lock(mutex_);
  if (const auto at = groups_.find(ring); at != groups_.end()) at->second->Abort(why);
}

Result<std::vector<std::unique_ptr<PlaceRings>>> MakePlaceRings(int places) {
  if (places < 1 || places > collective::kMaxRanks)
    return InvalidArgument("E-collective-size", "a process has 1 to ", collective::kMaxRanks, " places, not ",
                           places);
  const auto shared = std::make_shared<PlaceRings::Shared>(places);
  std::vector<std::unique_ptr<PlaceRings>> out;
  out.reserve(static_cast<std::size_t>(places));
  for (int place = 0; place < places; ++place) out.push_back(std::make_unique<PlaceRings>(shared, place));
  return out;
}

}  // namespace penstock::process
