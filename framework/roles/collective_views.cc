#include "framework/roles/collective_views.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/roles/attr_names.h"

namespace penstock::roles {
namespace {

constexpr std::array<std::pair<std::string_view, CollectiveKind>, 11> kCollectives = {{
    {"c_allreduce_adasum", CollectiveKind::kAllReduce},
    {"c_allreduce_sum", CollectiveKind::kAllReduce},
    {"c_allreduce_max", CollectiveKind::kAllReduce},
    {"c_allreduce_min", CollectiveKind::kAllReduce},
    {"c_allreduce_prod", CollectiveKind::kAllReduce},
    {"c_sparse_allreduce_sum", CollectiveKind::kAllReduce},
    {"c_broadcast", CollectiveKind::kBroadcast},
    {"c_allgather", CollectiveKind::kAllGather},
    {"c_reducescatter", CollectiveKind::kReduceScatter},
    {"allreduce", CollectiveKind::kAllReduce},
    {"broadcast", CollectiveKind::kBroadcast},
}};

template <typename Table, typename Kind>
Kind Find(const Table& table, const Op& op, Kind none) {
  const std::string_view type = op.type();
  const auto at = std::find_if(table.begin(), table.end(), [&](const auto& e) { return e.first == type; });
  return at == table.end() ? none : at->second;
}

int NumberOf(const Op& op, std::string_view attr, int otherwise) {
  return op.GetOr<std::int32_t>(attr, otherwise);
}

Names TextsOfRanks(const Op& op, std::string_view attr) {
  const auto* texts = op.Get<std::vector<std::string>>(attr);
  return texts == nullptr ? Names() : Names(*texts);
}

}  // namespace

CollectiveKind CollectiveView::kind() const { return Find(kCollectives, op_, CollectiveKind::kNone); }
int CollectiveView::ring() const { return NumberOf(op_, "ring_id", 0); }
int CollectiveView::root() const { return NumberOf(op_, "root", 0); }

bool IsOfFirstPlace(const Op& op) { return op.GetOr<bool>(attr::kFirstPlace, false); }

Names AllRingsView::addresses() const { return TextsOfRanks(op_, "trainers"); }
int AllRingsView::rank() const { return NumberOf(op_, "trainer_id", 0); }
int AllRingsView::rings() const { return NumberOf(op_, "nccl_comm_num", 1); }
bool AllRingsView::hierarchical() const { return op_.GetOr<bool>("use_hierarchical_allreduce", false); }
int AllRingsView::group_ranks() const { return NumberOf(op_, "hierarchical_allreduce_inter_nranks", 0); }

int RingIdView::rank() const { return NumberOf(op_, "rank", 0); }
std::string RingIdView::address() const { return op_.GetOr<std::string>("endpoint", ""); }
Names RingIdView::others() const { return TextsOfRanks(op_, "other_endpoints"); }

int RingView::rank() const { return NumberOf(op_, "rank", 0); }
int RingView::ranks() const { return NumberOf(op_, "nranks", 1); }
int RingView::ring() const { return NumberOf(op_, "ring_id", 0); }
std::span<const std::int32_t> RingView::devices() const {
  const auto* devices = op_.Get<std::vector<std::int32_t>>("devices");
  return devices == nullptr ? std::span<const std::int32_t>() : std::span(*devices);
}

}  // namespace penstock::roles
