// Tracks the exchange for norms over all gradients, one per step: which chunks of this server have been
// measured, and what the other servers have sent. No clipped parameter is updated before all of it is here.
//
//   SumExchange exchange(3, 2, 0);         // for 3 chunks, 2 servers, of which this is server 0
//   if (exchange.Measured()) ...           // all chunks are measured: send the others the sums
//   exchange.Take(1, 7, sums);             // server 1's sums of step 7
//   if (exchange.whole()) sums = exchange.Begin();   // compute with all of them; then
//   exchange.End();                        // step 7 has ended
//
// A server's sums count once per step, however often they come. Another server may be one step ahead: it
// measures step k + 1 after its updates of step k, so it has this server's sums of step k. Makes no decision
// that needs a clock or a network. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "framework/runtime/transport.h"

namespace penstock::pserver {

class SumExchange {
 public:
  // `chunks`: number of clipped chunks of this server. `servers`: number of servers, including this one.
  SumExchange(std::size_t chunks, int servers, int self);

  bool among_servers() const { return servers_.size() > 1; }
  // Exchanges of steps below this have ended.
  std::uint64_t over() const { return over_; }
  // Those of steps below this have begun.
  std::uint64_t begun() const { return over_ + (begun_ ? 1 : 0); }

  // One more chunk has been measured for step over(). Returns whether it was the last one.
  bool Measured();
  // Returns false if a server cannot legitimately be at that step.
  bool Take(int server, std::uint64_t step, Payload sums);
  // The server has received this server's sums of the step.
  void Taken(int server, std::uint64_t step);
  // The server's trainers have completed, and it has ended: it sends no more sums.
  void Complete(int server) { At(server).completed = true; }
  bool completed(int server) const { return At(server).completed; }

  // Whether all chunks have been measured and all servers' sums are here, and Begin was not called yet.
  bool whole() const;
  std::vector<Payload> Begin();  // the sums by server; empty for this one
  void End();

  // The servers whose sums of step over() this one waits for.
  std::vector<int> Lacks() const;
  // Whether nothing in progress can still complete, and every other server has this server's sums. A step
  // that was measured only in part, or whose sums another server did not send before it ended, does not
  // happen. Valid only once no gradient can come any more.
  bool settled() const;

 private:
  struct Other {
    std::optional<Payload> now, next;  // of step over(), and of the next one
    std::uint64_t taken_below = 0;     // it has our sums of steps below this
    bool completed = false;
  };
  const Other& At(int server) const { return servers_[static_cast<std::size_t>(server)]; }
  Other& At(int server) { return servers_[static_cast<std::size_t>(server)]; }
  bool all_measured() const { return chunks_ > 0 && measured_ == chunks_; }

  const std::size_t chunks_;
  const int self_;
  std::vector<Other> servers_;  // by number; this server's entry is unused
  std::uint64_t over_ = 0;
  std::size_t measured_ = 0;
  bool begun_ = false;
};

}  // namespace penstock::pserver
