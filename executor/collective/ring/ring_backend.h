// Runs operations with messages between ranks: around a ring for large data, along a tree for broadcasts, and
// with the agreement for small data.
//
//   RingBackend backend("gloo", std::move(links), {.report_after = 10s});
//
// Each operation begins with an agreement (group/agreed_backend.h), in which all ranks exchange their
// signatures (log2 P messages, about 200 P bytes). Small data travels with the signatures, and each rank
// reduces all ranks' data in rank order.
//
// In a larger reduction each rank collects its part of the data from all others and reduces it in rank order;
// the reduced parts then go around the ring. That sends as many bytes as adding along the ring, in as many
// messages, and its sums are those of one process. The first pieces are sent while the ranks still agree;
// they arrive in the backend's own memory.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "executor/collective/group/agreed_backend.h"
#include "executor/collective/group/rank_names.h"
#include "executor/collective/group/wait_reporter.h"
#include "executor/collective/ring/blocks.h"
#include "executor/collective/ring/group_end.h"
#include "executor/collective/ring/links.h"

namespace penstock::collective {

struct RingOptions {
  Nanoseconds report_after = observe::kReportAfter;  // 0: no reports of waits
  // Up to this size, the data of all ranks together travels with the agreement; equal on all ranks. (In a
  // broadcast or all-gather, the whole result must be at most small_bytes / P.) Each rank then receives all
  // data of all others, while a ring would bring it two elements for each of its own, in 2(P-1) sequential
  // messages instead of log2 P. That pays off as long as a message costs more than its bytes.
  std::size_t small_bytes = std::size_t{128} << 10;
  // The size of a ring's message, and the total size of the messages that a rank collects at a time; equal on
  // all ranks. A piece is still in a cache when it is reduced, and meanwhile the network delivers other
  // pieces.
  std::size_t piece_bytes = std::size_t{256} << 10;
  RankNames names;
  GroupEnd::ProcessStateOf state_of = {};  // of the ranks, as far as this process can tell
};

class RingBackend : public Backend {
 public:
  RingBackend(std::string_view name, std::unique_ptr<Links> links, const RingOptions& options = {});
  ~RingBackend() override;

  int rank() const override { return links_->rank(); }
  int size() const override { return links_->size(); }
  std::string_view name() const override { return name_; }
  bool adds_in_rank_order() const override { return true; }
  const RankNames& names() const override { return names_; }
  Status Failure() const override { return end_.Failure(); }
  Status Run(const Operation& op, Agreement& agreement) override;
  // Returns when the blocks of all ranks have come: ring_agreement.cc.
  Result<std::span<const Signature>> ExchangeSignatures(const Signature& mine) override;
  Status FailWith(const Status& why, FoundBy) override { return end_.Fail(why); }
  void Abort(const Status& why) override { end_.Abort(why); }

 private:
  // A range of bytes: of a rank's share of the data, or of one message of it.
  struct Range {
    std::size_t begin = 0, bytes = 0;
  };
  static constexpr std::size_t kAtOnce = 2;  // pieces in flight from a rank, and to it
  class Collection;                          // of the pieces of this rank's part: ring_sum.cc
  class Stream;                              // of the pieces that go around: ring_pass.cc

  // One round of the agreement: sends what this rank knows to `to`, and receives as much from `from`.
  struct Round {
    int to = 0, from = 0;
    std::size_t blocks = 0;  // number of blocks sent and received
    std::unique_ptr<std::byte[]> memory;
    std::unique_ptr<Transit> came;  // the receive for the next operation
  };

  // The exchange of blocks: ring_agreement.cc.
  void MakeRounds();
  void StartExchange(const Operation& op);
  void Expect(Round& round);
  std::unique_ptr<Transit> PassOn(const Round& round);
  bool Travels(const Operation& op) const;  // whether its data is in the blocks
  Status RunSmall(const Operation& op, Agreement& agreement);
  std::span<const std::byte> DataOf(int rank) const;

  Status Reduce(const Operation& op, Agreement& agreement);  // all_reduce, reduce
  Status ReduceScatter(const Operation& op, Agreement& agreement);
  Status AllGather(const Operation& op, Agreement& agreement);
  Status Broadcast(const Operation& op, Agreement& agreement);
  Status Exchange(const Operation& op, Agreement& agreement);
  Status ReceiveMessage(const Operation& op, const Signature& wanted, Agreement& agreement);

  // Agrees, and reduces part rank() of the data; part r of all ranks' data has the same size: ring_sum.cc.
  Status ReduceOwnPart(std::byte* data, const std::vector<Range>& parts, const Operation& op,
                       Agreement& agreement);
  // Sends each rank's part of the data around the ring, so that all get all parts: ring_pass.cc.
  Status GoAround(std::byte* data, const std::vector<Range>& parts);
  std::byte* Scratch(std::size_t bytes);
  std::vector<Range> EqualParts(std::int64_t elements, ElementType type) const;

  // Waits for `transit`, which may be null; `rank` is its other end.
  Status Await(std::unique_ptr<Transit>& transit, int rank);
  std::size_t Others() const { return static_cast<std::size_t>(size()) - 1; }
  int Neighbour(int distance) const { return (rank() + size() + distance % size()) % size(); }

  const std::string_view name_;
  const std::size_t piece_bytes_;
  const std::unique_ptr<Links> links_;
  const RankNames names_;
  GroupEnd end_;
  std::optional<WaitReporter> reporter_;
  Signature what_;  // of the current operation
  Blocks blocks_;   // of that operation: this rank's first, then those of the ranks to its right
  std::vector<Signature> signatures_;  // of all ranks, in that operation
  std::vector<Round> rounds_;
  std::unique_ptr<Transit> told_;  // the send of the first round
  std::unique_ptr<std::byte[]> scratch_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace penstock::collective
