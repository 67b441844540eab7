// The two phases of Fluid's sync server, as its trainers see them: GET until every trainer has sent its fetch
// barrier, SEND until every one has sent its batch barrier, and so on. A call of the other phase waits.
//
//   FluidPhases phases(2);
//   phases.Barrier("trainer 0");                 // false: trainer 1's is still to come
//   phases.Barrier("trainer 1");                 // true: GET is over, SEND is on
//
// Barriers are counted, as in Fluid: a trainer whose connection was made anew cannot be told from another.
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
  // Steps whose SEND is over: the step of gradients that come now, the version of parameters asked for now.
  std::uint64_t step() const { return step_; }

  // A barrier of the phase that is on. Whether that ends the phase.
  bool Barrier(const std::string& who);
  // A trainer that is done for good; in GET its fetch barrier, if it has sent one, counts no more. Whether
  // that ends the phase.
  bool Complete(const std::string& who);

 private:
  bool EndIfAll();

  FluidPhase now_ = FluidPhase::kGet;
  std::uint64_t step_ = 0;
  std::size_t trainers_;                 // that have not completed
  std::multiset<std::string> barriers_;  // of this phase: who sent them
};

}  // namespace penstock::pserver
