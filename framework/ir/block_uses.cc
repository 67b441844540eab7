#include "framework/ir/block_uses.h"

#include <algorithm>
#include <map>
#include <set>

namespace penstock {
namespace {

class Collector {
 public:
  Collector(const Program& program, bool only_written) : program_(program), only_written_(only_written) {}

  Status Collect(int index, std::vector<std::string>& out) {
    if (std::find(path_.begin(), path_.end(), index) != path_.end()) {
      return InvalidArgument("E-block-cycle", "block ", index, " starts itself");
    }
    // Each block is collected once, though many ops may start it.
    if (const auto done = done_.find(index); done != done_.end()) {
      out = done->second;
      return OkStatus();
    }
    path_.push_back(index);
    const Block& block = program_.block(index);
    std::set<std::string_view> seen;
    const auto mention = [&](const std::string& name) {
      if (name == kEmptyVarName || block.FindVar(name) != nullptr) return;
      if (seen.insert(name).second) out.push_back(name);
    };
    // `seen` holds views of names in the program and in `inner`, which must therefore not move.
    std::vector<std::vector<std::string>> inner;
    for (const OpEntry& entry : block.ops()) {
      for (const auto* slots : {&entry.op->inputs(), &entry.op->outputs()}) {
        if (only_written_ && slots == &entry.op->inputs()) continue;
        for (const Slot& slot : *slots) {
          for (const std::string& name : slot.args) mention(name);
        }
      }
      for (const int started : StartedBlocks(*entry.op)) {
        PENSTOCK_RETURN_IF_ERROR(CheckIndex(*entry.op, started));
        inner.emplace_back();
        PENSTOCK_RETURN_IF_ERROR(Collect(started, inner.back()));
        for (const std::string& name : inner.back()) mention(name);
      }
    }
    path_.pop_back();
    done_.emplace(index, out);
    return OkStatus();
  }

 private:
  Status CheckIndex(const Op& op, int started) const {
    if (started >= 0 && started < program_.block_count()) return OkStatus();
    return InvalidArgument("E-block-index", op.type(), ": an attribute names block ", started,
                           "; the program has ", program_.block_count(), " blocks");
  }

  const Program& program_;
  const bool only_written_;
  std::vector<int> path_;  // from the outermost block to the current one
  std::map<int, std::vector<std::string>> done_;
};

}  // namespace

std::vector<int> StartedBlocks(const Op& op) {
  std::vector<int> blocks;
  for (const NamedAttr& attr : op.attrs()) {
    if (const auto* one = std::get_if<BlockRef>(&attr.value)) blocks.push_back(one->index);
    if (const auto* many = std::get_if<std::vector<BlockRef>>(&attr.value)) {
      for (const BlockRef& ref : *many) blocks.push_back(ref.index);
    }
  }
  return blocks;
}

std::set<int> ReachedBlocks(const Program& program) {
  std::set<int> reached = {0};
  std::vector<int> to_visit = {0};
  while (!to_visit.empty()) {
    const int block = to_visit.back();
    to_visit.pop_back();
    for (const OpEntry& entry : program.block(block).ops()) {
      if (!entry.op->may_name_blocks()) continue;
      for (const int started : StartedBlocks(*entry.op)) {
        if (started < 0 || started >= program.block_count() || !reached.insert(started).second) continue;
        to_visit.push_back(started);
      }
    }
  }
  return reached;
}

Result<std::vector<std::string>> OuterNames(const Program& program, int block) {
  std::vector<std::string> names;
  PENSTOCK_RETURN_IF_ERROR(Collector(program, /*only_written=*/false).Collect(block, names));
  return names;
}

Result<std::vector<std::string>> OuterNamesWritten(const Program& program, int block) {
  std::vector<std::string> names;
  PENSTOCK_RETURN_IF_ERROR(Collector(program, /*only_written=*/true).Collect(block, names));
  return names;
}

std::vector<std::string> HandedNames(const Op& runner, const Block& block) {
  std::vector<std::string> names;
  for (const NamedAttr& attr : runner.attrs()) {
    const auto* texts = std::get_if<std::vector<std::string>>(&attr.value);
    if (texts == nullptr) continue;
    for (const std::string& name : *texts) {
      if (block.FindVar(name) != nullptr) names.push_back(name);
    }
  }
  return names;
}

bool HasGradient(const Program& program, int block) {
  for (int b = 0; b < program.block_count(); ++b) {
    if (program.block(b).forward_block() == block) return true;
  }
  return false;
}

Result<std::vector<std::string>> NamesForGradient(const Program& program, int block) {
  std::set<std::string> names;
  for (int b = 0; b < program.block_count(); ++b) {
    if (program.block(b).forward_block() != block) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> outer, OuterNames(program, b));
    for (const std::string& name : outer) {
      if (program.block(block).FindVar(name) != nullptr) names.insert(name);
    }
  }
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace penstock
