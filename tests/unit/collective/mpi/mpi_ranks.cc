// A rank of groups over MPI, started by mpirun: every operation, and every way in which a group ends. Prints
// errors; exits with 0 if there are none.
#include <cstdio>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "executor/collective/mpi/mpi.h"
#include "framework/base/strings.h"
#include "tests/unit/collective/all_operations.h"

namespace penstock::collective {
namespace {

std::string Expect(const Status& status, std::string_view id, std::string_view text) {
  const bool fits = status.id() == id && status.message().find(text) != std::string::npos;
  return fits ? "" : StrCat("expected ", id, " with '", text, "', got ", status.ToString());
}

std::string Mismatch(CollectiveGroup& group) {
  std::string data(group.rank() == 1 ? 4'000'000 : 2'000'000, 'x');
  const Status status = group.AllReduce(ElementsOf(data, ElementType::kInt32), Reduction::kSum).Wait();
  return Expect(status, "E-collective-mismatch", "rank 1 all_reduce 1 (sum of 1000000 i32, 4000000 bytes)");
}

std::string AbortOfOne(CollectiveGroup& group) {
  std::string data(8, 'x');
  if (group.rank() != 1)
    return Expect(group.Barrier().Wait(), "E-collective-peer-left",
                  "rank 1 has left the group: its data ends");
  const Completion waits = group.Recv(ElementsOf(data, ElementType::kUInt8), 0);  // no rank sends it
  group.Abort(DataLoss("E-test", "its data ends"));
  return Expect(waits.Wait(), "E-test", "its data");
}

std::string OneLeaves(CollectiveGroup& group) {
  const Status first = group.Barrier().Wait();
  if (!first.ok() || group.rank() == 1) return first.ok() ? "" : first.ToString();
  return Expect(group.Barrier().Wait(), "E-collective-peer-left", "rank 1 has left the group");
}

std::string MessageThatDoesNotFit(CollectiveGroup& group) {
  if (group.rank() > 1) return "";
  std::string data(group.rank() == 0 ? 1'000'000 : 10, 'x');
  const Elements elements = ElementsOf(data, ElementType::kUInt8);
  const Status status = (group.rank() == 0 ? group.Send(elements, 1) : group.Recv(elements, 0)).Wait();
  return Expect(status, "E-collective-mismatch", "rank 0 sends message from rank 0 to rank 1 (1000000 u8");
}

int Run() {
  const Result<MpiPlace> place = PlaceInMpi();
  if (!place.ok() || place->size < 2) {
    std::fprintf(stderr, "mpi_ranks: started by mpirun? %s\n", place.status().ToString().c_str());
    return 1;
  }
  std::vector<int> all(static_cast<std::size_t>(place->size));
  std::iota(all.begin(), all.end(), 0);
  std::vector<int> backwards(all.rbegin(), all.rend());
  const auto every = [](CollectiveGroup& group) {
    const std::string wrong = FirstDifferenceOfRandom(group, 11, 60);
    return wrong.empty() && group.size() == 2 ? FirstDifference(group, 2) : wrong;
  };
  const std::pair<std::vector<int>, std::function<std::string(CollectiveGroup&)>> parts[] = {
      {all, every},      {backwards, every}, {all, Mismatch},
      {all, AbortOfOne}, {all, OneLeaves},   {all, MessageThatDoesNotFit}};
  int number = 0;
  for (const auto& [ranks, part] : parts) {
    const Result<std::unique_ptr<CollectiveGroup>> group = MakeMpiGroup({.ranks = ranks, .number = number++});
    const std::string wrong = group.ok() ? part(**group) : group.status().ToString();
    if (wrong.empty()) continue;
    std::fprintf(stderr, "rank %d, part %d: %s\n", place->rank, number, wrong.c_str());
    return 1;
  }
  const Status refused = MakeMpiGroup({.ranks = {place->rank, place->rank}}).status();
  return refused.id() == "E-collective-size" ? 0 : 1;
}

}  // namespace
}  // namespace penstock::collective

int main() { return penstock::collective::Run(); }
