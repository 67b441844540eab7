#include "transpiler/plan/placement.h"

#include <array>
#include <utility>

namespace penstock::plan {
namespace {

// Maps choices to names and back.
template <typename Choice, std::size_t count>
using NameTable = std::array<std::pair<Choice, std::string_view>, count>;

constexpr NameTable<Placement, 3> kPlacements = {{{Placement::kRoundRobin, "RoundRobin"},
                                                  {Placement::kHashName, "HashName"},
                                                  {Placement::kSizeBalanced, "SizeBalanced"}}};
constexpr NameTable<Slicing, 3> kSlicings = {
    {{Slicing::kFluid, "fluid"}, {Slicing::kEven, "even"}, {Slicing::kMxnet, "mxnet"}}};

template <typename Table, typename Choice>
std::string_view NameIn(const Table& table, Choice wanted) {
  for (const auto& [choice, name] : table) {
    if (choice == wanted) return name;
  }
  return "?";
}

template <typename Choice, std::size_t count>
std::optional<Choice> FindIn(const NameTable<Choice, count>& table, std::string_view wanted) {
  for (const auto& [choice, name] : table) {
    if (name == wanted) return choice;
  }
  return std::nullopt;
}

}  // namespace

std::string_view PlacementName(Placement placement) { return NameIn(kPlacements, placement); }
std::optional<Placement> PlacementFromName(std::string_view name) { return FindIn(kPlacements, name); }

std::string_view SlicingName(Slicing slicing) { return NameIn(kSlicings, slicing); }
std::optional<Slicing> SlicingFromName(std::string_view name) { return FindIn(kSlicings, name); }

}  // namespace penstock::plan
