// Trainers of a simulation that die, and come back.
//
//   Deaths deaths(sim, 5, seed);                     // one to three, in 5 steps
//   sim.Run([&] { deaths.Check(); });
#pragma once

#include <random>

#include "tests/sim/simulation.h"

namespace penstock::test {

// Kills up to `most` trainers, each in the middle of a step, and starts their new processes some time later;
// often before a server has noticed the end. None that completes: a server may have ended, and a new process
// does not find it.
class Deaths {
 public:
  // Trainers begin `steps` steps.
  Deaths(Simulation& sim, int steps, std::uint64_t seed)
      : Deaths(sim, steps, seed, 1 + static_cast<int>(seed % 3)) {}
  Deaths(Simulation& sim, int steps, std::uint64_t seed, int most)
      : sim_(sim), steps_(steps), random_(seed), left_(most) {
    Choose();
  }

  // Before each event.
  void Check() {
    if (left_ == 0) return;
    Trainer* const victim = Living();
    if (victim == nullptr || victim->session().step() < step_ || victim->completing()) return;
    if (events_-- > 0) return;
    victim->Die();
    sim_.Note(StrCat("trainer ", id_, " dies"));
    ++died_;
    const Nanoseconds after = std::chrono::milliseconds(random_() % 400);
    sim_.net().After(after, [this, id = id_, incarnation = incarnation_++] {
      sim_.AddTrainer(id, sim_.job(), steps_, {.incarnation = incarnation});
    });
    if (--left_ > 0) Choose();
  }
  int died() const { return died_; }

 private:
  void Choose() {
    id_ = static_cast<int>(random_() % static_cast<std::uint64_t>(sim_.job().trainers));
    step_ = random_() % (static_cast<std::uint64_t>(steps_) + 1);
    events_ = static_cast<int>(random_() % 120);
  }
  Trainer* Living() {
    for (int i = sim_.trainer_count(); i-- > 0;) {
      if (sim_.trainer(i).id() == id_) return sim_.trainer(i).dead() ? nullptr : &sim_.trainer(i);
    }
    return nullptr;
  }

  Simulation& sim_;
  const int steps_;
  std::mt19937_64 random_;
  int left_, died_ = 0;
  int id_ = 0;
  std::uint64_t step_ = 0;
  int events_ = 0;
  std::uint64_t incarnation_ = 2;
};

}  // namespace penstock::test
