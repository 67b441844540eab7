// The books of norms over all gradients, one exchange a step: which chunks of this server have been measured,
// and what the other servers have told of theirs. Nothing that clips is updated before all of it is there.
//
//   SumExchange exchange(3, 2, 0);         // of 3 chunks, between servers 0 and 1, of which this is server 0
//   if (exchange.Measured()) ...           // all chunks are: tell the others
//   exchange.Take(1, 7, sums);             // what server 1 has told of step 7
//   if (exchange.whole()) sums = exchange.Begin();   // compute with it; then
//   exchange.End();                        // step 7 is over
//
// What a server tells counts once for a step, however often it comes. Another server may be one step ahead:
// it measures step k + 1 when its updates of step k have run, so it has this server's sums of step k.
// Decides nothing that needs a clock or a network. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "framework/runtime/transport.h"

namespace penstock::pserver {

class SumExchange {
 public:
  // `chunks`: that clip, on this server. `servers`: this one, `self`, among them.
  SumExchange(std::size_t chunks, int servers, int self);

  bool among_servers() const { return servers_.size() > 1; }
  // Exchanges of steps below it are over.
  std::uint64_t over() const { return over_; }

  // One more chunk has been measured for step over(). True: it was the last one.
  bool Measured();
  // False: no server that keeps to the order can be at that step.
  bool Take(int server, std::uint64_t step, Payload sums);
  // The server has what this one told of the step.
  void Taken(int server, std::uint64_t step);
  // The server's trainers have completed, and it has ended: it tells nothing more.
  void Complete(int server) { At(server).completed = true; }
  bool completed(int server) const { return At(server).completed; }

  // All chunks have been measured, and all servers have told theirs; not yet begun.
  bool whole() const;
  std::vector<Payload> Begin();  // what they have told, by server; of this one nothing
  void End();

  // Servers whose sums of step over() are not here, where this one waits for them.
  std::vector<int> Lacks() const;
  // Nothing is under way that may still come to an end, and every other server has what it was told. A step
  // of which only some chunks were measured, or whose sums another server ended without telling, does not
  // happen. Right only once no gradient can come any more.
  bool settled() const;

 private:
  struct Other {
    std::optional<Payload> now, next;  // of step over(), and of the one after it
    std::uint64_t taken_below = 0;     // it has ours of steps below it
    bool completed = false;
  };
  const Other& At(int server) const { return servers_[static_cast<std::size_t>(server)]; }
  Other& At(int server) { return servers_[static_cast<std::size_t>(server)]; }
  bool all_measured() const { return chunks_ > 0 && measured_ == chunks_; }

  const std::size_t chunks_;
  const int self_;
  std::vector<Other> servers_;  // this one's is not used
  std::uint64_t over_ = 0;
  std::size_t measured_ = 0;
  bool begun_ = false;
};

}  // namespace penstock::pserver
