#include "framework/ir/program.h"

#include <algorithm>

#include "framework/base/check.h"

namespace penstock {
namespace {

// The block's index in the high bits makes ids unique in a program without a counter shared by its blocks.
constexpr int kBlockShift = 40;

std::uint64_t NextContentId() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Block::Block(const Block& other)
    : index_(other.index_),
      parent_(other.parent_),
      forward_block_(other.forward_block_),
      has_forward_block_(other.has_forward_block_),
      next_op_(other.next_op_),
      ops_(other.ops_),
      vars_(other.vars_),
      var_at_(other.var_at_) {}

Block::Block(Block&& other) noexcept
    : index_(other.index_),
      parent_(other.parent_),
      forward_block_(other.forward_block_),
      has_forward_block_(other.has_forward_block_),
      next_op_(other.next_op_),
      ops_(std::move(other.ops_)),
      vars_(std::move(other.vars_)),
      var_at_(std::move(other.var_at_)) {}

const Var* Block::FindVar(std::string_view name) const {
  const auto it = var_at_.find(name);
  return it == var_at_.end() ? nullptr : vars_[it->second].get();
}

VarRef Block::FindVarRef(std::string_view name) const {
  const auto it = var_at_.find(name);
  return it == var_at_.end() ? nullptr : vars_[it->second];
}

const Block::OpIndex& Block::op_index() const {
  if (!op_index_.ready.load(std::memory_order_acquire)) {
    const std::lock_guard lock(op_index_.mutex);
    if (!op_index_.ready.load(std::memory_order_relaxed)) {
      op_index_.at.clear();
      op_index_.at.reserve(ops_.size());
      for (std::size_t i = 0; i < ops_.size(); ++i) {
        op_index_.at.emplace(static_cast<std::uint64_t>(ops_[i].id), static_cast<int>(i));
      }
      op_index_.ready.store(true, std::memory_order_release);
    }
  }
  return op_index_;
}

int Block::PositionOf(OpId id) const {
  const OpIndex& index = op_index();
  const auto it = index.at.find(static_cast<std::uint64_t>(id));
  return it == index.at.end() ? -1 : it->second;
}

const Op* Block::FindOp(OpId id) const {
  const int position = PositionOf(id);
  return position < 0 ? nullptr : ops_[static_cast<std::size_t>(position)].op.get();
}

OpId Block::NewId() {
  return static_cast<OpId>((static_cast<std::uint64_t>(index_) << kBlockShift) | next_op_++);
}

OpId Block::Insert(int position, Op op) {
  PENSTOCK_CHECK(position >= 0 && position <= static_cast<int>(ops_.size()), "position out of range");
  const OpId id = NewId();
  const bool at_end = position == static_cast<int>(ops_.size());
  ops_.insert(ops_.begin() + position, OpEntry{id, std::make_shared<const Op>(std::move(op))});
  // Appending, the common case when a program is built, keeps the index.
  if (at_end && op_index_.ready) {
    op_index_.at.emplace(static_cast<std::uint64_t>(id), position);
  } else {
    PositionsMoved();
  }
  return id;
}

void Block::Replace(OpId id, Op op) {
  const int position = PositionOf(id);
  PENSTOCK_CHECK(position >= 0, "the op to replace is gone");
  ops_[static_cast<std::size_t>(position)].op = std::make_shared<const Op>(std::move(op));
}

bool Block::Remove(OpId id) {
  const int position = PositionOf(id);
  if (position < 0) return false;
  ops_.erase(ops_.begin() + position);
  PositionsMoved();
  return true;
}

void Block::SetOps(std::vector<OpEntry> ops) {
  ops_ = std::move(ops);
  PositionsMoved();
}

void Block::SetVar(Var var) { AddVarRef(std::make_shared<const Var>(std::move(var))); }

void Block::AddVarRef(VarRef var) {
  const auto it = var_at_.find(var->name);
  if (it != var_at_.end()) {
    vars_[it->second] = std::move(var);
  } else {
    var_at_.emplace(var->name, vars_.size());
    vars_.push_back(std::move(var));
  }
}

bool Block::RemoveVar(std::string_view name) {
  const auto it = var_at_.find(name);
  if (it == var_at_.end()) return false;
  const std::size_t position = it->second;
  vars_.erase(vars_.begin() + static_cast<std::ptrdiff_t>(position));
  var_at_.erase(it);
  for (auto& [other, at] : var_at_) {
    if (at > position) --at;
  }
  return true;
}

void Block::RemoveVars(const std::set<std::string, std::less<>>& names) {
  if (names.empty()) return;
  std::erase_if(vars_, [&](const VarRef& var) { return names.contains(var->name); });
  var_at_.clear();
  for (std::size_t i = 0; i < vars_.size(); ++i) var_at_.emplace(vars_[i]->name, i);
}

bool Block::RenameDeclaration(std::string_view from, const std::string& to) {
  if (from == to) return FindVar(from) != nullptr;
  if (FindVar(from) == nullptr) return false;
  RemoveVar(to);
  const auto it = var_at_.find(from);
  const std::size_t position = it->second;
  Var renamed = *vars_[position];
  renamed.name = to;
  renamed.wire_bytes.clear();
  var_at_.erase(it);
  var_at_.emplace(to, position);
  vars_[position] = std::make_shared<const Var>(std::move(renamed));
  return true;
}

bool Block::RenameVar(std::string_view from, const std::string& to) {
  if (!RenameDeclaration(from, to)) return false;
  for (OpEntry& entry : ops_) {
    Op op = *entry.op;
    op.Rename(from, to, /*attrs=*/true);
    if (!op.SameAs(*entry.op)) entry.op = std::make_shared<const Op>(std::move(op));
  }
  return true;
}

Program::Program() {
  blocks_.push_back(std::make_shared<Block>(0, -1));
  Touch();
}

void Program::Touch() { content_id_ = NextContentId(); }

Block& Program::MutableBlock(int index) {
  Touch();
  std::shared_ptr<Block>& block = blocks_[static_cast<std::size_t>(index)];
  if (block.use_count() > 1) block = std::make_shared<Block>(*block);
  return *block;
}

Block& Program::AddBlock(int parent) {
  Touch();
  blocks_.push_back(std::make_shared<Block>(block_count(), parent));
  return *blocks_.back();
}

void Program::ReplaceBlock(int index, Block block) {
  Touch();
  blocks_[static_cast<std::size_t>(index)] = std::make_shared<Block>(std::move(block));
}

int Program::BlockOfVar(int block, std::string_view name) const {
  // Nearly always there is no block whose gradient this is: then the way is one line, up to block 0.
  while (block >= 0 && block < block_count()) {
    const Block& here = this->block(block);
    if (here.FindVar(name) != nullptr) return block;
    if (here.forward_block() >= 0 || here.parent() >= block) break;
    block = here.parent();
  }
  if (block < 0) return -1;
  // Every step leads to an earlier block: a program read from a file may say anything.
  std::vector<int> next = {block};
  for (std::size_t i = 0; i < next.size(); ++i) {
    const int at = next[i];
    if (at < 0 || at >= block_count()) continue;
    const Block& here = this->block(at);
    if (here.FindVar(name) != nullptr) return at;
    for (const int around : {here.forward_block(), here.parent()}) {
      if (around < at && std::find(next.begin(), next.end(), around) == next.end()) next.push_back(around);
    }
  }
  return -1;
}

const Var* Program::FindVar(int block, std::string_view name) const {
  const int at = BlockOfVar(block, name);
  return at < 0 ? nullptr : this->block(at).FindVar(name);
}

}  // namespace penstock
