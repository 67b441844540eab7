// Runs operations through memory that all ranks of the group share: the common part of `threads` and
// `shared_memory`.
//
//   ArenaBackend backend({.name = "threads", .rank = 0, .ranks = 4, .memory = pages, .gone = ...});
//
// Works in turns: in each, a rank copies a block of its data into the arena, reduces its slice of the
// previous block, and copies out the result of the block before that; then all ranks meet. Blocks are small
// enough for a cache, and a rank reads its own slice in place. Before the first meeting of an operation, each
// rank writes its signature to the arena, so the agreement needs no meeting of its own.
#pragma once

#include <memory>
#include <string_view>

#include "executor/collective/arena/peers.h"
#include "executor/collective/group/agreed_backend.h"

namespace penstock::collective {

struct ArenaOptions {
  std::string_view name;  // of the backend
  int rank = 0;
  int ranks = 1;
  std::byte* memory = nullptr;        // Arena::Bytes(ranks), zero before the first use
  std::shared_ptr<const void> owner;  // keeps the memory alive
  GoneCheck gone;
  Nanoseconds report_after = observe::kReportAfter;
  RankNames names;
};

class ArenaBackend : public Backend {
 public:
  explicit ArenaBackend(const ArenaOptions& options);
  ~ArenaBackend() override { peers_.Leave(); }

  int rank() const override { return rank_; }
  int size() const override { return arena_.ranks(); }
  std::string_view name() const override { return name_; }
  bool adds_in_rank_order() const override { return true; }
  const RankNames& names() const override { return names_; }
  Status Failure() const override { return peers_.Failure(); }
  Status Run(const Operation& op, Agreement& agreement) override;
  // Meets the other ranks for the first time in an operation.
  Result<std::span<const Signature>> ExchangeSignatures(const Signature& mine) override;
  // The memory keeps what one rank has found alone. What all have found needs no telling.
  Status FailWith(const Status& why, FoundBy found) override {
    return found == FoundBy::kAllRanks ? why : peers_.Fail(why);
  }
  void Abort(const Status& why) override { peers_.Abort(why); }

 private:
  struct Slice {
    std::size_t begin = 0, end = 0;  // elements
  };

  Slice SliceOf(int rank, std::size_t elements, ElementType type) const;
  Status ReduceToAll(const Operation& op, Agreement& agreement);  // all_reduce, reduce
  Status ReduceSmall(const Operation& op, Agreement& agreement);
  Status ReduceScatter(const Operation& op, Agreement& agreement);
  Status AllGather(const Operation& op, Agreement& agreement);
  Status Broadcast(const Operation& op, Agreement& agreement);
  void ReduceInto(std::byte* to, const Operation& op, std::size_t elements, const std::byte* mine,
                  std::size_t offset_bytes, std::byte* copy = nullptr) const;

  // Processes `blocks` blocks in turns: give(k), one turn later work(k), another turn later take(k). Within a
  // turn the three work on different blocks. The first turn ends with the agreement.
  template <typename Give, typename Work, typename Take>
  Status InTurns(Agreement& agreement, std::size_t blocks, const Give& give, const Work& work,
                 const Take* take);
  template <typename Give, typename Work>
  Status InTurns(Agreement& agreement, std::size_t blocks, const Give& give, const Work& work) {
    return InTurns<Give, Work, Give>(agreement, blocks, give, work, nullptr);
  }

  // Messages: messages.cc.
  struct Transfer;
  Status Exchange(const Operation& op, Agreement& agreement);
  bool SendPiece(const Operation& op, Transfer& sent);
  Result<bool> ReceivePiece(const Operation& op, Transfer& received, Agreement& agreement);

  const std::string_view name_;
  const int rank_;
  const Arena arena_;
  const std::shared_ptr<const void> owner_;
  const RankNames names_;
  Peers peers_;
  std::uint32_t turn_ = 0;  // number of meetings; the same on all ranks
};

}  // namespace penstock::collective
