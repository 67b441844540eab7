// The operations of a hierarchical group (hierarchy.h), each composed of operations of its smaller groups.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "executor/collective/group/agreed_backend.h"
#include "executor/collective/group/rank_names.h"
#include "executor/collective/hierarchy/hierarchy.h"

namespace penstock::collective {

class HierarchyBackend : public Backend {
 public:
  // `hierarchy` must be consistent.
  explicit HierarchyBackend(Hierarchy hierarchy);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(order_.size()); }
  std::string_view name() const override { return "hierarchical"; }
  bool adds_in_rank_order() const override;
  Status Accept(const Operation& op) const override;
  const RankNames& names() const override { return names_; }
  Status Run(const Operation& op, Agreement& agreement) override;
  // Operations of their own: an inner all_gather, an outer one, and an inner broadcast.
  Result<std::span<const Signature>> ExchangeSignatures(const Signature& mine) override;
  // All ranks find the mismatch. (The smaller groups compare messages.)
  Status FailWith(const Status& why, FoundBy) override { return why; }
  void Abort(const Status& why) override;

 private:
  struct Place {
    int host = 0, local = 0;
  };

  bool leads() const { return outer_ != nullptr; }
  const Place& place() const { return PlaceOf(rank_); }
  const Place& PlaceOf(int rank) const { return places_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& MyHost() const { return hosts_[static_cast<std::size_t>(place().host)]; }
  CollectiveOptions Options() const { return {.label = label_, .blocking = true}; }
  // The group that carries a message to or from `other`, or null, and that rank's number in it.
  CollectiveGroup* RouteTo(int other, int& there) const;

  Status AllReduce(const Operation& op);
  Status Reduce(const Operation& op);
  Status ReduceScatter(const Operation& op);
  Status AllGather(const Operation& op);
  Status Broadcast(const Operation& op);
  Status Exchange(const Operation& op);

  // Reduces all ranks' elements into `data` of each leader. Elsewhere `data` is unchanged.
  Status ReduceToLeaders(const Operation& op, Elements data);
  // Gathers every rank's elements in `all`, host by host; rank r has counts[r] of them.
  Status GatherByHost(ConstElements mine, const std::vector<std::int64_t>& counts, Elements all);

  // The result of a step of one group; its error ends the other group too.
  Status OfInner(const Completion& step);
  Status OfOuter(const Completion& step);

  const int rank_;
  const RankNames names_;
  const std::vector<std::vector<int>> hosts_;
  std::vector<int> order_;  // ranks, host by host
  std::vector<Place> places_;
  const std::unique_ptr<CollectiveGroup> inner_, outer_;
  std::string label_;                  // of the steps: describes the current operation
  std::vector<Signature> signatures_;  // of all ranks, in that operation
};

}  // namespace penstock::collective
