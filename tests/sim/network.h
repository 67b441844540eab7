// A simulated network and clock for one thread: every message takes a random time, and may be lost, repeated
// or reordered, as decided by one seed.
//
//   Network net(seed, {.lost = 0.05});
//   ... net.transport() for servers and trainers; net.TransportOf("trainer 1") for Cut ...
//   net.Cut("trainer 1", "ps0:1", std::chrono::seconds(2));
//   net.RunUntil([&] { return done; }, std::chrono::hours(1));
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "framework/runtime/clock.h"
#include "framework/runtime/transport.h"

namespace penstock::test {

struct Faults {
  Nanoseconds delay_max = std::chrono::milliseconds(20);
  double lost = 0;
  double twice = 0;
  // Probability that a message is delayed by up to twenty times delay_max, so that later messages may have
  // changed its meaning. If above 0, half of the repeated messages are also that late.
  double late = 0;
  // Probability that a message breaks its connection instead of arriving. Each end learns that at its own
  // time; half of the broken connections can be made again only after up to five seconds.
  double breaks = 0;
};
inline constexpr Faults kRough = {.lost = 0.1, .twice = 0.1, .late = 0.02};
inline constexpr Faults kBreaking = {.lost = 0.02, .twice = 0.05, .late = 0.02, .breaks = 0.005};
// The faults of a seed: most have the first kind, every third the second.
inline constexpr Faults FaultsOf(std::uint64_t seed) { return seed % 3 == 2 ? kBreaking : kRough; }
// How long processes on such a network wait for each other when a connection breaks.
inline constexpr Nanoseconds ReconnectDeadlineOn(const Faults& faults) {
  return faults.breaks > 0 ? Nanoseconds(std::chrono::seconds(60)) : Nanoseconds(0);
}

class Network {
 public:
  Network(std::uint64_t seed, Faults faults) : random_(seed), faults_(faults) {}

  Transport& transport() { return TransportOf({}); }
  // The transport of one process, for Cut. A server has the name of its address.
  Transport& TransportOf(const std::string& process);
  Clock& clock() { return clock_; }
  void After(Nanoseconds delay, std::function<void()> what);
  // Advances the clock from event to event until `done`. Returns false if the limit passes first or no event
  // is left.
  bool RunUntil(const std::function<bool()>& done, Nanoseconds limit);
  // Kills the process that listens at the address: its callers see a broken connection, and no message
  // reaches it any more.
  void Kill(const std::string& address);
  // A partition: for this time, no message of one process arrives at another, and neither can connect to the
  // other. Messages in the other direction arrive. The end of a connection, too, is noticed only afterwards.
  void Cut(const std::string& from, const std::string& to, Nanoseconds duration);
  // Called inside an event that takes time: runs the events that happen until it ends. Calls may be nested
  // once; a deeper call does nothing.
  void RunMeanwhile();
  double Uniform() { return std::uniform_real_distribution<double>()(random_); }
  Nanoseconds Delay() {
    return Nanoseconds(static_cast<std::int64_t>(Uniform() * static_cast<double>(faults_.delay_max.count())));
  }
  std::mt19937_64& random() { return random_; }
  std::uint64_t messages() const { return messages_; }
  std::uint64_t breaks() const { return breaks_; }    // connections that have broken
  std::uint64_t cut_off() const { return cut_off_; }  // messages lost in partitions
  Nanoseconds reconnect_deadline() const { return ReconnectDeadlineOn(faults_); }

 private:
  class Link;
  class SimTransport : public Transport {
   public:
    SimTransport(Network& net, std::string process) : net_(net), process_(std::move(process)) {}
    Result<std::unique_ptr<Listener>> Listen(const std::string& address, ConnectionHandler& handler) override;
    std::shared_ptr<Connection> Connect(const std::string& address, ConnectionHandler& handler) override;

   private:
    Network& net_;
    const std::string process_;
  };
  class SimListener;
  // How long messages from one process to another are still lost.
  Nanoseconds CutFor(const std::string& from, const std::string& to) const;

  std::mt19937_64 random_;
  const Faults faults_;
  FakeClock clock_;
  std::map<std::string, SimTransport> transports_;  // by process
  std::map<std::pair<Nanoseconds, std::uint64_t>, std::function<void()>>
      events_;  // by time, then order of creation
  std::uint64_t made_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t breaks_ = 0;
  std::uint64_t cut_off_ = 0;
  std::map<std::string, Nanoseconds> unreachable_until_;                  // by address
  std::map<std::pair<std::string, std::string>, Nanoseconds> cut_until_;  // from a process to another
  int meanwhiles_ = 0;                                                    // active calls of RunMeanwhile
  std::map<std::string, ConnectionHandler*> listeners_;
  std::vector<std::weak_ptr<Link>> dialled_;
};

}  // namespace penstock::test
