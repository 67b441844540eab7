// The rules for slicing parameters and for placing slices on pservers.
#pragma once

#include <optional>
#include <string_view>

namespace penstock::plan {

// The rule that assigns slices to pservers. A Dispatcher is the user's own rule.
enum class Placement {
  kRoundRobin,   // one after the other
  kHashName,     // by the FNV-1a hash of the slice's name
  kSizeBalanced  // the largest first, each to the pserver with the fewest bytes
};
std::string_view PlacementName(Placement placement);  // "RoundRobin"
std::optional<Placement> PlacementFromName(std::string_view name);

// How parameters are cut into slices of whole rows; see slicing.h.
enum class Slicing {
  kFluid,  // as many slices as min_block_size allows, rounded up to rows: the last may be much smaller
  kEven,   // as many slices as kFluid, whose numbers of rows differ by at most one
  kMxnet   // from big_array_bound on, over all pservers; smaller ones whole. Determines the placement too
};
std::string_view SlicingName(Slicing slicing);  // "fluid"
std::optional<Slicing> SlicingFromName(std::string_view name);

}  // namespace penstock::plan
