#include "tools/profile/steps.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string_view>
#include <utility>

namespace penstock::profile {
namespace {

using OpKey = std::pair<int, std::string_view>;  // position and type

// Whether the instruction is an op of the program, and not one that a pass has made.
bool IsOfProgram(const exec::CompiledBlock& block, const exec::Instruction& instruction) {
  const auto& ops = block.program.block(block.block).ops();
  const auto position = static_cast<std::size_t>(instruction.position);
  return position < ops.size() && ops[position].op->type() == instruction.op->type();
}

}  // namespace

InstructionOf Match(const exec::Specialisation& plan, const Run& run) {
  const exec::CompiledBlock& block = *plan.block;
  if (run.block != block.block) return {};
  std::map<OpKey, std::deque<int>> wanted;
  std::size_t missing = 0;  // ops of the program
  for (std::size_t i = 0; i < block.instructions.size(); ++i) {
    const exec::Instruction& instruction = block.instructions[i];
    wanted[{instruction.position, instruction.op->type()}].push_back(static_cast<int>(i));
    if (IsOfProgram(block, instruction)) ++missing;
  }
  InstructionOf found;
  for (const OpRun& op : run.ops) {
    found.push_back(-1);
    if (op.block != block.block) continue;
    const auto at = wanted.find({op.position, op.type});
    if (at == wanted.end() || at->second.empty()) continue;
    found.back() = at->second.front();
    at->second.pop_front();
    if (IsOfProgram(block, block.instructions[static_cast<std::size_t>(found.back())])) --missing;
  }
  return missing == 0 ? found : InstructionOf();
}

std::int64_t MedianOf(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Steps StepsOf(const exec::Specialisation& plan, std::span<const Run> runs) {
  Steps steps;
  std::vector<std::vector<std::int64_t>> times(plan.block->instructions.size());
  for (const Run& run : runs) {
    InstructionOf match = Match(plan, run);
    if (match.empty()) continue;
    for (std::size_t k = 0; k < match.size(); ++k) {
      if (match[k] >= 0) times[static_cast<std::size_t>(match[k])].push_back(run.ops[k].self_ns);
    }
    steps.runs.push_back(run);
    steps.matches.push_back(std::move(match));
  }
  for (std::vector<std::int64_t>& of : times)
    steps.median_ns.push_back(of.empty() ? -1 : MedianOf(std::move(of)));
  if (steps.runs.empty()) return steps;
  std::vector<std::int64_t> durations;
  for (const Run& run : steps.runs) durations.push_back(run.ns());
  const std::int64_t median = MedianOf(durations);
  steps.median_run = static_cast<std::size_t>(std::ranges::find(durations, median) - durations.begin());
  return steps;
}

}  // namespace penstock::profile
