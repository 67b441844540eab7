#include "framework/ir/random_draws.h"

#include <array>
#include <charconv>

#include "framework/base/strings.h"

namespace penstock {
namespace {

bool FillsWithRandomNumbers(const Op& op) {
  constexpr std::array<std::string_view, 3> kTypes = {"uniform_random", "gaussian_random",
                                                      "truncated_gaussian_random"};
  for (const std::string_view type : kTypes) {
    if (op.type() == type) return true;
  }
  return false;
}

constexpr std::string_view kKey = "draw of ";

std::string KeyOf(const std::string& name) { return StrCat(kKey, name); }

// The draw that the program records for the variable; `place` if it records none.
std::int64_t DrawAt(const Program& program, const std::string& name, std::int64_t place) {
  const auto& recorded = program.meta().policies;
  const auto found = recorded.find(KeyOf(name));
  if (found == recorded.end()) return place;
  std::int64_t draw = place;
  const std::string& text = found->second;
  std::from_chars(text.data(), text.data() + text.size(), draw);
  return draw;
}

// Calls visit(name, place) for each op that fills a variable with random numbers, until visit returns false.
template <typename Visit>
void EachDraw(const Program& program, int block, const Visit& visit) {
  std::int64_t place = 0;
  for (const OpEntry& entry : program.block(block).ops()) {
    if (!FillsWithRandomNumbers(*entry.op)) continue;
    const std::string& name = entry.op->OutputName("Out");
    if (!visit(name, place++)) return;
  }
}

}  // namespace

std::map<std::string, std::int64_t> DrawsOf(const Program& program) {
  std::map<std::string, std::int64_t> draws;
  EachDraw(program, 0, [&](const std::string& name, std::int64_t place) {
    draws.emplace(name, DrawAt(program, name, place));  // the first op counts
    return true;
  });
  return draws;
}

std::int64_t DrawOf(const Program& program, int block, const std::string& name) {
  std::int64_t draw = 0;
  EachDraw(program, block, [&](const std::string& filled, std::int64_t place) {
    if (filled != name) return true;
    draw = DrawAt(program, name, place);
    return false;
  });
  return draw;
}

bool RecordsADraw(std::string_view policy) { return policy.starts_with(kKey); }

void KeepDraws(const Program& source, Program& derived) {
  const std::map<std::string, std::int64_t> expected = DrawsOf(source);
  for (const auto& [name, draw] : DrawsOf(derived)) {
    const Var* var = derived.FindVar(0, name);
    const bool is_slice = var != nullptr && var->facts.slice;
    const auto whole = expected.find(is_slice ? var->facts.slice->whole : name);
    if (whole == expected.end() || whole->second == draw) continue;
    derived.mutable_meta().policies[KeyOf(name)] = StrCat(whole->second);
  }
}

}  // namespace penstock
