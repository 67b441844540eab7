#include "framework/ir/program.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>

#include "framework/base/check.h"

namespace penstock {
namespace {

// The block's index in the high bits makes ids unique in a program without a counter shared by its blocks.
constexpr int kBlockShift = 40;

// An id's number in its block. Numbers are given from 1 on without gaps.
std::size_t NumberOf(OpId id) {
  return static_cast<std::size_t>(static_cast<std::uint64_t>(id) & ((std::uint64_t{1} << kBlockShift) - 1));
}

constexpr std::size_t kAtOnce = 32;  // names that are looked up together

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

Block Block::WithoutOps() const {
  Block out(index_, parent_);
  out.forward_block_ = forward_block_;
  out.has_forward_block_ = has_forward_block_;
  out.next_op_ = next_op_;
  out.vars_ = vars_;
  out.var_at_ = var_at_;
  return out;
}

const Var* Block::FindVar(std::string_view name) const {
  const std::int64_t at = var_at_.Find(name, vars_);
  return at < 0 ? nullptr : vars_[static_cast<std::size_t>(at)].get();
}

VarRef Block::FindVarRef(std::string_view name) const {
  const std::int64_t at = var_at_.Find(name, vars_);
  return at < 0 ? nullptr : vars_[static_cast<std::size_t>(at)];
}

const Block::OpIndex& Block::op_index() const {
  if (!op_index_.ready.load(std::memory_order_acquire)) {
    const std::lock_guard lock(op_index_.mutex);
    if (!op_index_.ready.load(std::memory_order_relaxed)) {
      op_index_.at.assign(next_op_, -1);
      for (std::size_t i = 0; i < ops_.size(); ++i) {
        op_index_.at[NumberOf(ops_[i].id)] = static_cast<std::int32_t>(i);
      }
      op_index_.ready.store(true, std::memory_order_release);
    }
  }
  return op_index_;
}

int Block::PositionOf(OpId id) const {
  const OpIndex& index = op_index();
  const std::size_t number = NumberOf(id);
  const int position = number < index.at.size() ? index.at[number] : -1;
  return position >= 0 && ops_[static_cast<std::size_t>(position)].id == id ? position : -1;
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
    op_index_.at.resize(NumberOf(id) + 1, -1);
    op_index_.at.back() = position;
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
  for (const OpEntry& entry : ops) {
    const auto block = static_cast<std::uint64_t>(entry.id) >> kBlockShift;
    PENSTOCK_CHECK(block == static_cast<std::uint64_t>(index_) && NumberOf(entry.id) < next_op_,
                   "an op has an id that this block never gave");
  }
  ops_ = std::move(ops);
  PositionsMoved();
}

void Block::SetVar(Var var) { AddVarRef(std::make_shared<const Var>(std::move(var))); }

void Block::AddVarRef(VarRef var) {
  const std::int64_t at = var_at_.Find(var->name, vars_);
  if (at >= 0) {
    vars_[static_cast<std::size_t>(at)] = std::move(var);
  } else {
    var_at_.Add(var->name, vars_.size());
    vars_.push_back(std::move(var));
  }
}

bool Block::AddVar(VarRef var) {
  if (var_at_.Find(var->name, vars_) >= 0) return false;
  var_at_.Add(var->name, vars_.size());
  vars_.push_back(std::move(var));
  return true;
}

void Block::ReserveVars(std::size_t count) {
  vars_.reserve(count);
  var_at_.Reserve(count);
}

bool Block::RemoveVar(std::string_view name) {
  const std::int64_t at = var_at_.Find(name, vars_);
  if (at < 0) return false;
  vars_.erase(vars_.begin() + at);
  var_at_.Assign(vars_);
  return true;
}

void Block::RemoveVars(const std::set<std::string, std::less<>>& names) {
  if (names.empty()) return;
  const std::vector<std::string_view> texts(names.begin(), names.end());
  std::vector<std::int64_t> positions(texts.size());
  VarPositions(texts, positions);
  for (const std::int64_t at : positions) {
    if (at >= 0) vars_[static_cast<std::size_t>(at)] = nullptr;
  }
  std::erase(vars_, nullptr);
  var_at_.Assign(vars_);
}

bool Block::RenameDeclaration(std::string_view from, const std::string& to) {
  if (from == to) return FindVar(from) != nullptr;
  if (FindVar(from) == nullptr) return false;
  RemoveVar(to);
  const auto at = static_cast<std::size_t>(var_at_.Find(from, vars_));
  Var renamed = *vars_[at];
  renamed.name = to;
  renamed.wire_bytes.clear();
  var_at_.Remove(from, vars_);
  var_at_.Add(to, at);
  vars_[at] = std::make_shared<const Var>(std::move(renamed));
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
  if (block.use_count() > 1) {
    block = std::make_shared<Block>(*block);
  } else {
    // The last other owner may have been a program in another thread; its reads must come before our writes.
    // Copying the pointer synchronizes with that thread, use_count alone does not (and ThreadSanitizer does
    // not support fences).
    const std::shared_ptr<Block> acquired = block;
  }
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

Program::Declared Program::Look(int block, std::string_view name) const {
  // The common case: no block is a gradient block, so the search goes straight up to block 0.
  while (block >= 0 && block < block_count()) {
    const Block& here = this->block(block);
    if (const Var* var = here.FindVar(name)) return {block, var};
    if (here.forward_block() >= 0 || here.parent() >= block) break;
    block = here.parent();
  }
  if (block < 0) return {};
  // A program from a file may contain cycles, so every step must lead to an earlier block.
  std::vector<int> next = {block};
  for (std::size_t i = 0; i < next.size(); ++i) {
    const int at = next[i];
    if (at < 0 || at >= block_count()) continue;
    const Block& here = this->block(at);
    if (const Var* var = here.FindVar(name)) return {at, var};
    for (const int around : {here.forward_block(), here.parent()}) {
      if (around < at && std::find(next.begin(), next.end(), around) == next.end()) next.push_back(around);
    }
  }
  return {};
}

// Looks up at most kAtOnce names: first in the block, then those not found in the enclosing block, and so on.
void Program::FindFewVars(int block, std::span<const std::string_view> names,
                          std::span<const Var*> found) const {
  std::array<std::string_view, kAtOnce> left;
  std::array<std::size_t, kAtOnce> place = {};
  std::array<std::int64_t, kAtOnce> positions = {};
  std::size_t count = names.size();
  std::copy(names.begin(), names.end(), left.begin());
  std::iota(place.begin(), place.end(), std::size_t{0});
  std::fill(found.begin(), found.end(), nullptr);
  while (count > 0 && block >= 0 && block < block_count()) {
    const Block& here = this->block(block);
    here.VarPositions({left.data(), count}, {positions.data(), count});
    std::size_t missing = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (positions[i] >= 0) {
        found[place[i]] = here.vars()[static_cast<std::size_t>(positions[i])].get();
      } else {
        left[missing] = left[i];
        place[missing++] = place[i];
      }
    }
    count = missing;
    if (here.forward_block() >= 0 || here.parent() >= block) {
      for (std::size_t i = 0; i < count; ++i) found[place[i]] = FindVar(block, left[i]);
      return;
    }
    block = here.parent();
  }
}

void Program::FindVars(int block, std::span<const std::string_view> names,
                       std::span<const Var*> found) const {
  for (std::size_t begin = 0; begin < names.size(); begin += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, names.size() - begin);
    FindFewVars(block, names.subspan(begin, count), found.subspan(begin, count));
  }
}

int Program::BlockOfVar(int block, std::string_view name) const { return Look(block, name).block; }

const Var* Program::FindVar(int block, std::string_view name) const { return Look(block, name).var; }

}  // namespace penstock
