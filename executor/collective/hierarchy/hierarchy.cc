#include "executor/collective/hierarchy/hierarchy.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "executor/collective/group/queued_group.h"
#include "executor/collective/hierarchy/hierarchy_backend.h"

namespace penstock::collective {
namespace {

constexpr char kSize[] = "E-collective-size";

Status CheckGroup(const CollectiveGroup* group, std::string_view name, std::size_t size, std::size_t rank) {
  if (group == nullptr) return InvalidArgument(kSize, "the hierarchy lacks its ", name, " group");
  if (static_cast<std::size_t>(group->size()) == size && static_cast<std::size_t>(group->rank()) == rank)
    return OkStatus();
  return InvalidArgument(kSize, "the ", name, " group is rank ", group->rank(), " of ", group->size(),
                         "; the hierarchy wants rank ", rank, " of ", size);
}

Status CheckHierarchy(const Hierarchy& hierarchy) {
  std::vector<int> ranks;
  const std::vector<int>* mine = nullptr;
  std::size_t host = 0, local = 0;
  for (std::size_t i = 0; i < hierarchy.hosts.size(); ++i) {
    const std::vector<int>& each = hierarchy.hosts[i];
    if (each.empty()) return InvalidArgument(kSize, "host ", i, " of the hierarchy has no ranks");
    ranks.insert(ranks.end(), each.begin(), each.end());
    const auto found = std::find(each.begin(), each.end(), hierarchy.rank);
    if (found == each.end()) continue;
    mine = &each;
    host = i;
    local = static_cast<std::size_t>(found - each.begin());
  }
  std::sort(ranks.begin(), ranks.end());
  std::vector<int> all(ranks.size());
  std::iota(all.begin(), all.end(), 0);
  if (ranks != all || mine == nullptr) {
    return InvalidArgument(kSize, "the hosts of the hierarchy have ranks ", Join(ranks, ", "),
                           "; they must be 0 to n-1, among them rank ", hierarchy.rank);
  }
  PENSTOCK_RETURN_IF_ERROR(CheckGroup(hierarchy.inner.get(), "inner", mine->size(), local));
  if (local == 0) return CheckGroup(hierarchy.outer.get(), "outer", hierarchy.hosts.size(), host);
  if (hierarchy.outer == nullptr) return OkStatus();
  return InvalidArgument(kSize, "rank ", hierarchy.rank,
                         " has an outer group and is not the first of its host");
}

}  // namespace

Result<std::unique_ptr<CollectiveGroup>> MakeHierarchicalGroup(Hierarchy hierarchy) {
  PENSTOCK_RETURN_IF_ERROR(CheckHierarchy(hierarchy));
  const std::string name = hierarchy.trace_name;
  return std::unique_ptr<CollectiveGroup>(
      std::make_unique<QueuedGroup>(std::make_unique<HierarchyBackend>(std::move(hierarchy)), name));
}

}  // namespace penstock::collective
