#include "transpiler/plan/deal.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <utility>

#include "framework/base/hash.h"
#include "transpiler/plan/names.h"
#include "transpiler/plan/slicing.h"

namespace penstock::plan {
namespace {

// All slices, in the order in which they are placed.
std::vector<SliceRef> DealOrder(const PlacementPlan& plan) {
  std::vector<SliceRef> order;
  for (const int param : plan.send_order) {
    const std::size_t slices = plan.params[static_cast<std::size_t>(param)].slices.size();
    for (std::size_t i = 0; i < slices; ++i) order.push_back({param, static_cast<int>(i)});
  }
  return order;
}

Slice& At(PlacementPlan& plan, SliceRef ref) {
  return plan.params[static_cast<std::size_t>(ref.param)].slices[static_cast<std::size_t>(ref.slice)];
}

void DealRoundRobin(PlacementPlan& plan) {
  int next = 0;
  for (const SliceRef ref : DealOrder(plan)) {
    At(plan, ref).pserver = next++ % static_cast<int>(plan.pservers.size());
  }
}

void DealByName(PlacementPlan& plan) {
  for (const SliceRef ref : DealOrder(plan)) {
    const std::string name = ParamPieceName(plan.param(ref), ref.slice);
    At(plan, ref).pserver = PserverOfName(name, static_cast<int>(plan.pservers.size()));
  }
}

void DealBySize(PlacementPlan& plan) {
  const std::vector<SliceRef> order = DealOrder(plan);
  std::vector<std::int64_t> bytes;
  bytes.reserve(order.size());
  for (const SliceRef ref : order) bytes.push_back(plan.param(ref).BytesOf(plan.slice(ref)));
  const std::vector<int> pservers = BalanceSizes(bytes, static_cast<int>(plan.pservers.size()));
  for (std::size_t i = 0; i < order.size(); ++i) At(plan, order[i]).pserver = pservers[i];
}

// As MXNet: a whole array is placed by its number, spread by a prime; part i of a cut array is placed on
// pserver i.
void DealAsMxnet(PlacementPlan& plan) {
  constexpr std::int64_t kSpread = 9973;
  const auto pservers = static_cast<std::int64_t>(plan.pservers.size());
  for (std::size_t key = 0; key < plan.params.size(); ++key) {
    ParamPlacement& param = plan.params[key];
    if (!param.sliced()) {
      param.slices.front().pserver = static_cast<int>(static_cast<std::int64_t>(key) * kSpread % pservers);
      continue;
    }
    const std::int64_t rows = param.slices.back().row_end;
    int part = 0;  // the slice's part; parts without rows have no slice
    for (Slice& slice : param.slices) {
      while (PartEnd(rows, static_cast<int>(pservers), part) < slice.row_end) ++part;
      slice.pserver = part;
    }
  }
}

// Calls the user's dispatcher as Fluid does, and checks its answers.
class DispatcherCalls {
 public:
  DispatcherCalls(const DispatcherFactory& factory, PlacementPlan& plan) : factory_(factory), plan_(plan) {
    for (std::size_t i = 0; i < plan.pservers.size(); ++i) index_[plan.pservers[i]] = static_cast<int>(i);
  }

  Status Deal() {
    const bool compat = plan_.dialect == Dialect::kFluid18;
    for (int trainer = 0; trainer < (compat ? plan_.trainers : 1); ++trainer) {
      PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<Dispatcher> dispatcher, factory_(plan_.pservers));
      PENSTOCK_RETURN_IF_ERROR(DealGradients(*dispatcher, trainer));
      if (trainer > 0) continue;
      PENSTOCK_RETURN_IF_ERROR(dispatcher->Reset());
      PENSTOCK_RETURN_IF_ERROR(DealParams(*dispatcher));
    }
    if (compat) DropAgreeing();
    return OkStatus();
  }

 private:
  Status DealGradients(Dispatcher& dispatcher, int trainer) {
    for (const int position : plan_.send_order) {
      ParamPlacement& param = plan_.params[static_cast<std::size_t>(position)];
      std::vector<Piece> pieces;
      for (std::size_t i = 0; i < param.slices.size(); ++i) {
        pieces.push_back({.name = SentGradName(plan_, param, static_cast<int>(i), trainer),
                          .dtype = param.dtype,
                          .shape = param.ShapeOf(param.slices[i]),
                          .sparse = param.sparse});
      }
      PENSTOCK_ASSIGN_OR_RETURN(const std::vector<int> pservers, Ask(dispatcher, pieces));
      if (plan_.dialect != Dialect::kFluid18) continue;
      for (std::size_t i = 0; i < pservers.size(); ++i) param.slices[i].sent_to.push_back(pservers[i]);
    }
    return OkStatus();
  }

  Status DealParams(Dispatcher& dispatcher) {
    const std::vector<SliceRef> order = DealOrder(plan_);
    std::vector<Piece> pieces;
    for (const SliceRef ref : order) {
      const ParamPlacement& param = plan_.param(ref);
      pieces.push_back({.name = ParamPieceName(param, ref.slice),
                        .dtype = param.dtype,
                        .shape = param.ShapeOf(plan_.slice(ref))});
    }
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<int> pservers, Ask(dispatcher, pieces));
    for (std::size_t i = 0; i < order.size(); ++i) At(plan_, order[i]).pserver = pservers[i];
    return OkStatus();
  }

  Result<std::vector<int>> Ask(Dispatcher& dispatcher, const std::vector<Piece>& pieces) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> addresses, dispatcher.Dispatch(pieces));
    if (addresses.size() != pieces.size()) {
      std::vector<std::string_view> asked;
      asked.reserve(pieces.size());
      for (const Piece& piece : pieces) asked.push_back(piece.name);
      return InvalidArgument("E-plan-dispatcher",
                             "plan: the dispatcher must give as many addresses as variables, ", pieces.size(),
                             ", not ", addresses.size())
          .With(StrCat("the variables are ", Join(asked, ", ")));
    }
    std::vector<int> pservers;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const auto it = index_.find(addresses[i]);
      if (it == index_.end()) {
        return InvalidArgument("E-plan-dispatcher", "plan: the dispatcher puts ", pieces[i].name, " on ",
                               Quote(addresses[i]), "; the pservers are ", Join(plan_.pservers, ", "));
      }
      pservers.push_back(it->second);
    }
    return pservers;
  }

  // Clears sent_to where the gradient goes to the same pserver as the parameter.
  void DropAgreeing() {
    for (ParamPlacement& param : plan_.params) {
      for (Slice& slice : param.slices) {
        const auto here = [&](int pserver) { return pserver == slice.pserver; };
        if (std::all_of(slice.sent_to.begin(), slice.sent_to.end(), here)) slice.sent_to.clear();
      }
    }
  }

  const DispatcherFactory& factory_;
  PlacementPlan& plan_;
  std::map<std::string, int> index_;
};

}  // namespace

int PserverOfName(std::string_view name, int pservers) {
  return static_cast<int>(Fnv1a64(name) % static_cast<std::uint64_t>(pservers));
}

std::vector<int> BalanceSizes(std::span<const std::int64_t> bytes, int pservers) {
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  using Load = std::pair<std::int64_t, int>;  // bytes, pserver
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int i = 0; i < pservers; ++i) loads.emplace(0, i);
  std::vector<int> placed(bytes.size());
  for (const std::size_t i : order) {
    const auto [load, pserver] = loads.top();
    loads.pop();
    placed[i] = pserver;
    loads.emplace(load + bytes[i], pserver);
  }
  return placed;
}

Status DealSlices(const TranspileConfig& config, PlacementPlan& plan) {
  if (config.dispatcher) return DispatcherCalls(config.dispatcher, plan).Deal();
  if (config.slicing == Slicing::kMxnet) {
    DealAsMxnet(plan);
    return OkStatus();
  }
  switch (config.placement) {
    case Placement::kRoundRobin:
      DealRoundRobin(plan);
      break;
    case Placement::kHashName:
      DealByName(plan);
      break;
    case Placement::kSizeBalanced:
      DealBySize(plan);
      break;
  }
  return OkStatus();
}

}  // namespace penstock::plan
