// A simulated network and clock for ranks that are threads, of which one runs at a time. One seed decides
// which one runs, the delays of messages, and which rank dies when. If every rank waits and no message is in
// transit, the ranks hang, and RunAll returns false instead of hanging too.
//
//   RankNetwork net(seed, 4);
//   net.KillAt(2, std::chrono::milliseconds(30));
//   const bool ended = net.RunAll([&](int rank) {
//     collective::RingBackend backend("sim", net.LinksOf("ring", rank, {0, 1, 2, 3}), {.report_after = {}});
//     ...
//   });
//
// The thread of a dead rank continues, so that its objects are destroyed in order, but its messages reach no
// other rank.
#pragma once

#include <semaphore.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "executor/collective/ring/links.h"
#include "framework/runtime/clock.h"

namespace penstock::test {

class RankLinks;

class RankNetwork {
 public:
  RankNetwork(std::uint64_t seed, int ranks);
  ~RankNetwork();

  // Calls `main` for each rank on its own thread. Returns false if the ranks hang.
  bool RunAll(const std::function<void(int rank)>& main);
  void KillAt(int rank, Nanoseconds when);
  bool dead(int rank) const { return dead_[static_cast<std::size_t>(rank)]; }

  // The links of `rank`, which is one of `members`. Call it on the rank's thread. Waits until all members
  // have called it, including dead ones.
  std::unique_ptr<collective::Links> LinksOf(const std::string& group, int rank, std::vector<int> members);

  // Lets other ranks run until `ready`, or until all hang. Call it on the thread of `rank`.
  void Await(int rank, const std::function<bool()>& ready);
  std::uint64_t Random(std::uint64_t below) { return random_() % below; }

 private:
  friend class RankLinks;
  class Link;
  // Group, sender and receiver, as ranks of the network.
  using LinkKey = std::tuple<std::string, int, int>;

  Link& LinkOf(const std::string& group, int from, int to);
  void After(Nanoseconds delay, std::function<void()> what);
  Nanoseconds Delay() { return Nanoseconds(1'000 * static_cast<std::int64_t>(Random(20'000))); }
  void Kill(int rank);
  void HandOver();
  void AwaitTurn(int rank);

  std::mt19937_64 random_;
  // By rank: it may run. A std::binary_semaphore would yield the processor before it sleeps, which takes long
  // beside busy processes.
  std::vector<sem_t> turns_;
  bool hung_ = false;
  std::vector<bool> dead_;
  std::vector<bool> finished_;
  std::vector<const std::function<bool()>*> waits_for_;  // null: may run
  Nanoseconds now_{0};
  std::uint64_t made_ = 0;
  std::map<std::pair<Nanoseconds, std::uint64_t>, std::function<void()>> events_;
  std::map<LinkKey, std::unique_ptr<Link>> links_;
  std::map<std::string, std::map<int, RankLinks*>> open_;  // by group and rank
  std::map<std::string, std::set<int>> joined_;
};

}  // namespace penstock::test
