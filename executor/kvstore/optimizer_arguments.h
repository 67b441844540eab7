// The optimizers of a key-value store and their arguments, as a table: names and defaults of MXNet 1.9.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::kvstore {

struct Argument {
  enum class Range { kAny, kAtLeast0, kAbove0, kFraction, kTruth, kCount };
  std::string_view name;
  std::optional<double> value = {};  // the default; nullopt: off
  Range range = Range::kAny;
};

bool HasOptimizer(std::string_view optimizer);
// Arguments that all optimizers have come last.
std::vector<const Argument*> ArgumentsOf(std::string_view optimizer);
const Argument* FindArgument(std::string_view optimizer, std::string_view argument);  // null: it has none
bool InRange(const Argument& argument, double value);
std::string_view RangeOf(const Argument& argument);  // "at least 0"

}  // namespace penstock::kvstore
