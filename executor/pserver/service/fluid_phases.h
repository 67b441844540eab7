// The phases of Fluid's sync server, as its trainers see them: GET until every trainer has sent its fetch
// barrier, then SEND until every trainer has sent its batch barrier, and so on. Calls of the other wait.
//
//   FluidPhases phases(2);
//   phases.Barrier("trainer 0");                 // false: trainer 1's has not come yet
//   phases.Barrier("trainer 1");                 // true: GET has ended, SEND has begun
//
// Barriers are only counted, as in Fluid: a reconnected trainer cannot be told from another.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace penstock::pserver {

enum class FluidPhase { kGet, kSend };

class FluidPhases {
 public:
  explicit FluidPhases(int trainers) : trainers_(static_cast<std::size_t>(trainers)) {}

  FluidPhase now() const { return now_; }
  // The number of ended SEND phases: the step of arriving gradients, the version of requested parameters.
  std::uint64_t step() const { return step_; }

  // A barrier of the current phase. Returns whether that ends the phase.
  bool Barrier(const std::string& who);
  // A trainer has finished; in GET its fetch barrier, if it has sent one, no longer counts. Returns whether
  // that ends the phase.
  bool Complete(const std::string& who);

 private:
  bool EndIfAll();

  FluidPhase now_ = FluidPhase::kGet;
  std::uint64_t step_ = 0;
  std::size_t trainers_;                 // that have not completed
  std::multiset<std::string> barriers_;  // the senders of this phase's barriers
};

}  // namespace penstock::pserver
