// The rings among several places of one process. Each place runs its part of a batch on a thread of its own.
//
//   PENSTOCK_ASSIGN_OR_RETURN(const auto places, MakePlaceRings(4));
//   ... on thread r: an exec::Executor with ExecutorOptions{.rings = places[r].get()} ...
//   for (const auto& place : places) place->Abort(why);  // one has failed: ends all waits
//
// Place r is rank r of every ring. A ring exists as soon as an op uses it: no program joins ranks or makes
// rings. After an error the rings cannot be used any more; make new ones.
//
// Each object belongs to the thread of its place, except Abort and Cancel.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/runtime/collective_group.h"
#include "framework/runtime/collective_rings.h"

namespace penstock::process {

class PlaceRings : public CollectiveRings {
 public:
  class Shared;
  PlaceRings(std::shared_ptr<Shared> shared, int place);
  ~PlaceRings() override;

  // kFailedPrecondition E-collective-joined: places of one process are not ranks of a job.
  Status Join(const std::vector<std::string>& addresses, int rank) override;
  Status MakeRing(int ring, int group_ranks) override;
  Status MakeOwnRing(int ring) override;
  Status Begin(const Program& program, int ring, std::string_view label) override;
  // kUnavailable E-collective-memory.
  Result<CollectiveGroup*> Ring(int ring) override;

  // Ends this place's waits in all rings, and the operations that it would start, with `why`. From any
  // thread.
  void Abort(const Status& why) { AbortAll(why); }

 protected:
  void AbortAll(const Status& why) override;
  void AbortRing(int ring, const Status& why) override;

 private:
  const std::shared_ptr<Shared> shared_;
  const int place_;
  std::mutex mutex_;  // guards the members below
  std::map<int, std::unique_ptr<CollectiveGroup>> groups_;
  Status aborted_;
};

// One for each place. kInvalidArgument E-collective-size: not 1 to 256 places.
Result<std::vector<std::unique_ptr<PlaceRings>>> MakePlaceRings(int places);

}  // namespace penstock::process
