#include "executor/collective/hierarchy/hierarchy_backend.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "executor/collective/group/plain_data.h"
#include "executor/collective/group/reduce.h"

namespace penstock::collective {
namespace {

Elements RangeOf(const Elements& all, std::int64_t begin, std::int64_t count) {
  return {all.data + static_cast<std::size_t>(begin) * SizeOf(all.type), count, all.type};
}

// Memory for as many elements as `like` has, of the same type.
class Copied {
 public:
  explicit Copied(const ConstElements& like)
      : bytes_(std::make_unique_for_overwrite<std::byte[]>(like.bytes())),
        elements_{bytes_.get(), like.count, like.type} {}
  const Elements& elements() const { return elements_; }

 private:
  const std::unique_ptr<std::byte[]> bytes_;
  const Elements elements_;
};

}  // namespace

HierarchyBackend::HierarchyBackend(Hierarchy hierarchy)
    : rank_(hierarchy.rank),
      names_(std::move(hierarchy.names)),
      hosts_(std::move(hierarchy.hosts)),
      inner_(std::move(hierarchy.inner)),
      outer_(std::move(hierarchy.outer)) {
  for (const std::vector<int>& host : hosts_) order_.insert(order_.end(), host.begin(), host.end());
  places_.resize(order_.size());
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    for (std::size_t local = 0; local < hosts_[host].size(); ++local)
      places_[static_cast<std::size_t>(hosts_[host][local])] = {static_cast<int>(host),
                                                                static_cast<int>(local)};
  }
}

bool HierarchyBackend::adds_in_rank_order() const {
  if (!std::is_sorted(order_.begin(), order_.end())) return false;
  if (hosts_.size() == 1) return inner_->adds_in_rank_order();
  return hosts_.size() == order_.size() && outer_->adds_in_rank_order();
}

CollectiveGroup* HierarchyBackend::RouteTo(int other, int& there) const {
  const Place& at = PlaceOf(other);
  there = at.host == place().host ? at.local : at.host;
  if (at.host == place().host) return inner_.get();
  return at.local == 0 ? outer_.get() : nullptr;
}

Status HierarchyBackend::Accept(const Operation& op) const {
  if (op.kind != OperationKind::kMessage) return OkStatus();
  for (const int other : {op.to, op.from}) {
    int there = 0;
    if (other < 0 || RouteTo(other, there) != nullptr) continue;
    return Unimplemented("E-collective-route", "a hierarchical group has no message between rank ",
                         names_(rank_), " and rank ", names_(other),
                         ", of another host, unless both are the first of their hosts; use a flat group");
  }
  return OkStatus();
}

Status HierarchyBackend::Run(const Operation& op, Agreement& agreement) {
  label_ = op.kind == OperationKind::kMessage ? op.label : Describe(agreement.what(), names_);
  if (op.kind == OperationKind::kMessage) return Exchange(op);
  PENSTOCK_RETURN_IF_ERROR(agreement.Reach());
  switch (op.kind) {
    case OperationKind::kAllReduce:
      return AllReduce(op);
    case OperationKind::kReduce:
      return Reduce(op);
    case OperationKind::kReduceScatter:
      return ReduceScatter(op);
    case OperationKind::kAllGather:
      return AllGather(op);
    case OperationKind::kBroadcast:
      return Broadcast(op);
    case OperationKind::kBarrier:
    case OperationKind::kMessage:
      return OkStatus();  // all ranks have met in the agreement
  }
  return InternalError("E-collective-kind", "no such operation");
}

void HierarchyBackend::Abort(const Status& why) {
  inner_->Abort(why);
  if (leads()) outer_->Abort(why);
}

Status HierarchyBackend::OfInner(const Completion& step) {
  Status status = step.Wait();
  if (status.ok()) return status;
  Status told(status.code(), std::string(status.id()),
              StrCat("among ranks ", Join(names_(MyHost()), ", "), " of a host: ", status.message()));
  if (leads()) outer_->Abort(told);
  return told;
}

Status HierarchyBackend::OfOuter(const Completion& step) {
  Status status = step.Wait();
  if (status.ok()) return status;
  std::vector<int> leaders;
  for (const std::vector<int>& host : hosts_) leaders.push_back(host[0]);
  Status told(status.code(), std::string(status.id()),
              StrCat("between hosts, among ranks ", Join(names_(leaders), ", "), ": ", status.message()));
  inner_->Abort(told);
  return told;
}

Result<std::span<const Signature>> HierarchyBackend::ExchangeSignatures(const Signature& mine) {
  const auto bytes = static_cast<std::int64_t>(sizeof(Signature));
  std::vector<Signature> gathered(order_.size());
  PENSTOCK_RETURN_IF_ERROR(
      GatherByHost({reinterpret_cast<const std::byte*>(&mine), bytes, ElementType::kUInt8},
                   std::vector<std::int64_t>(order_.size(), bytes),
                   {reinterpret_cast<std::byte*>(gathered.data()), bytes * size(), ElementType::kUInt8}));
  signatures_.resize(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i)
    signatures_[static_cast<std::size_t>(order_[i])] = gathered[i];
  return std::span<const Signature>(signatures_);
}

Status HierarchyBackend::GatherByHost(ConstElements mine, const std::vector<std::int64_t>& counts,
                                      Elements all) {
  std::vector<std::int64_t> of_hosts, of_mine;
  for (const std::vector<int>& host : hosts_) {
    of_hosts.push_back(0);
    for (const int each : host) of_hosts.back() += counts[static_cast<std::size_t>(each)];
  }
  for (const int each : MyHost()) of_mine.push_back(counts[static_cast<std::size_t>(each)]);
  const std::int64_t begin =
      std::accumulate(of_hosts.begin(), of_hosts.begin() + place().host, std::int64_t{0});
  const Elements here = RangeOf(all, begin, of_hosts[static_cast<std::size_t>(place().host)]);
  PENSTOCK_RETURN_IF_ERROR(OfInner(inner_->AllGather(mine, of_mine, here, Options())));
  if (leads()) PENSTOCK_RETURN_IF_ERROR(OfOuter(outer_->AllGather(here, of_hosts, all, Options())));
  return OfInner(inner_->Broadcast(all, 0, Options()));
}

Status HierarchyBackend::ReduceToLeaders(const Operation& op, Elements data) {
  const bool mean = op.reduction == Reduction::kMean;
  const Reduction step = mean ? Reduction::kSum : op.reduction;
  PENSTOCK_RETURN_IF_ERROR(OfInner(inner_->Reduce(data, step, 0, Options())));
  if (!leads()) return OkStatus();
  PENSTOCK_RETURN_IF_ERROR(OfOuter(outer_->AllReduce(data, step, Options())));
  const std::byte* const sums[] = {data.data};
  if (mean) {
    ReduceInOrder(op.type, Reduction::kMean, sums, static_cast<std::size_t>(data.count), data.data,
                  order_.size());
  }
  return OkStatus();
}

Status HierarchyBackend::AllReduce(const Operation& op) {
  PENSTOCK_RETURN_IF_ERROR(ReduceToLeaders(op, op.out));
  return OfInner(inner_->Broadcast(op.out, 0, Options()));
}

Status HierarchyBackend::Reduce(const Operation& op) {
  const Place root = PlaceOf(op.root);
  if (!leads()) {
    PENSTOCK_RETURN_IF_ERROR(ReduceToLeaders(op, op.out));
    return rank_ == op.root ? OfInner(inner_->Recv(op.out, 0, Options())) : OkStatus();
  }
  if (rank_ == op.root) return ReduceToLeaders(op, op.out);
  const Copied made(op.in);  // the leader's own data must not change
  CopyBytes(made.elements().data, op.in.data, op.in.bytes());
  PENSTOCK_RETURN_IF_ERROR(ReduceToLeaders(op, made.elements()));
  if (root.host != place().host) return OkStatus();
  return OfInner(inner_->Send(made.elements(), root.local, Options()));
}

Status HierarchyBackend::ReduceScatter(const Operation& op) {
  const Copied made(op.in);
  CopyBytes(made.elements().data, op.in.data, op.in.bytes());
  PENSTOCK_RETURN_IF_ERROR(ReduceToLeaders(op, made.elements()));
  const auto part_of = [&](int rank) { return RangeOf(made.elements(), rank * op.out.count, op.out.count); };
  if (!leads()) return OfInner(inner_->Recv(op.out, 0, Options()));
  CopyBytes(op.out.data, part_of(rank_).data, op.out.bytes());
  for (std::size_t local = 1; local < MyHost().size(); ++local) {
    PENSTOCK_RETURN_IF_ERROR(
        OfInner(inner_->Send(part_of(MyHost()[local]), static_cast<int>(local), Options())));
  }
  return OkStatus();
}

Status HierarchyBackend::AllGather(const Operation& op) {
  const Copied all(op.out);
  PENSTOCK_RETURN_IF_ERROR(GatherByHost(op.in, op.counts, all.elements()));
  std::vector<std::int64_t> begins(order_.size());
  std::exclusive_scan(op.counts.begin(), op.counts.end(), begins.begin(), std::int64_t{0});
  std::int64_t at = 0;
  for (const int rank : order_) {
    const auto each = static_cast<std::size_t>(rank);
    const Elements from = RangeOf(all.elements(), at, op.counts[each]);
    CopyBytes(RangeOf(op.out, begins[each], op.counts[each]).data, from.data, from.bytes());
    at += op.counts[each];
  }
  return OkStatus();
}

// Broadcasts first within the root's host, then between the leaders, then within the other hosts.
Status HierarchyBackend::Broadcast(const Operation& op) {
  const Place root = PlaceOf(op.root);
  const bool at_root = root.host == place().host;
  if (at_root) PENSTOCK_RETURN_IF_ERROR(OfInner(inner_->Broadcast(op.out, root.local, Options())));
  if (leads()) PENSTOCK_RETURN_IF_ERROR(OfOuter(outer_->Broadcast(op.out, root.host, Options())));
  return at_root ? OkStatus() : OfInner(inner_->Broadcast(op.out, 0, Options()));
}

Status HierarchyBackend::Exchange(const Operation& op) {
  int to = -1, from = -1;
  CollectiveGroup* const sends = op.to < 0 ? nullptr : RouteTo(op.to, to);
  CollectiveGroup* const receives = op.from < 0 ? nullptr : RouteTo(op.from, from);
  const auto end = [this](const CollectiveGroup* group, const Completion& step) {
    return group == inner_.get() ? OfInner(step) : OfOuter(step);
  };
  if (sends == receives) return end(sends, sends->SendRecv(op.in, to, op.out, from, Options()));
  if (receives == nullptr) return end(sends, sends->Send(op.in, to, Options()));
  if (sends == nullptr) return end(receives, receives->Recv(op.out, from, Options()));
  // Sends and receives at the same time, each in its own group.
  const CollectiveOptions beside{.label = label_};
  const Completion sent = sends->Send(op.in, to, beside);
  const Completion received = receives->Recv(op.out, from, beside);
  const Status first = end(receives, received), second = end(sends, sent);
  return first.ok() ? second : first;
}

}  // namespace penstock::collective
