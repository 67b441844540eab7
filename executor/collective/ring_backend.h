// Runs operations by messages between ranks: around a ring for large data, along a tree for broadcasts.
//
//   RingBackend backend("gloo", std::move(links), {.report_after = 10s});
//
// A reduction goes around in pieces: a rank adds its own elements to what comes from its left neighbour and
// passes the sum on. Part c of the data is so added in the order c+1, c+2, ..., c (modulo the ranks), always
// the same one, and one rank computes each part, so all get the same bytes. Partial sums have the elements'
// type: of fp16 and bf16 each step is rounded. With two ranks the order makes no difference.
//
// Before each operation all ranks learn what all others are about to do (log2 P messages, about 200 P bytes),
// so ranks that do not agree find out before they send or write any data.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "executor/collective/backend.h"
#include "executor/collective/group_end.h"
#include "executor/collective/links.h"
#include "executor/collective/wait_reporter.h"

namespace penstock::collective {

struct RingOptions {
  Nanoseconds report_after = observe::kReportAfter;  // 0: waits are not reported
};

class RingBackend : public Backend {
 public:
  RingBackend(std::string_view name, std::unique_ptr<Links> links, const RingOptions& options = {});
  ~RingBackend() override { end_.Leave(); }

  int rank() const override { return links_->rank(); }
  int size() const override { return links_->size(); }
  std::string_view name() const override { return name_; }
  bool adds_in_rank_order() const override { return size() <= 2; }
  Status Run(const Operation& op) override;
  void Abort(const Status& why) override { end_.Abort(why); }

 private:
  // A range of bytes: of a rank's share of the data, or of one message of it.
  struct Range {
    std::size_t begin = 0, bytes = 0;
  };
  struct Pass;  // of a piece around the ring: ring_pass.cc

  Status Agree();
  Status Reduce(const Operation& op);  // all_reduce, reduce
  Status ReduceScatter(const Operation& op);
  Status AllGather(const Operation& op);
  Status Broadcast(const Operation& op);
  Status Exchange(const Operation& op);
  Status ReceiveMessage(const Operation& op, const Signature& wanted);

  // Leaves on each rank its own part of the reduction of `data`, and writes over the others: ring_pass.cc.
  Status ReduceParts(const Operation& op, std::byte* data, const std::vector<Range>& parts);
  // Fills in the parts of the others.
  Status GatherParts(std::byte* data, const std::vector<Range>& parts);
  Status GoAround(Pass& pass);
  std::vector<Range> EqualParts(std::int64_t elements, ElementType type) const;

  // Null: there is nothing to wait for.
  Status Await(std::unique_ptr<Transit>& transit, int rank);
  int Neighbour(int distance) const { return (rank() + size() + distance % size()) % size(); }

  const std::string_view name_;
  const std::unique_ptr<Links> links_;
  GroupEnd end_;
  std::optional<WaitReporter> reporter_;
  Signature what_;  // of the operation that runs
};

}  // namespace penstock::collective
