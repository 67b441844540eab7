// A program is a value: copying one costs a few pointers, and changing a copy leaves the original alone.
// Blocks, ops and variables are shared until they are written to (copy on write).
//
//   Program program = *ParseProgram(bytes);         // wire/wire.h
//   Program copy = program;                          // cheap
//   Block& main = copy.MutableBlock(0);              // its own block 0; ops and vars are still shared
//   OpId id = main.Append(MakeOp(...));
//
// A pass does not call MutableBlock: it collects its edits in a ProgramEdit (ir/edit.h) and applies them at
// once. Not thread-safe for writers; any number of threads may read one value.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ir/name_index.h"
#include "framework/ir/op.h"
#include "framework/ir/var.h"

namespace penstock {

struct OpEntry {
  OpId id;
  OpRef op;
};

class Block {
 public:
  Block(std::int32_t index, std::int32_t parent) : index_(index), parent_(parent) {}
  Block(const Block& other);
  Block(Block&& other) noexcept;
  Block& operator=(const Block&) = delete;
  // The same block and variables without the ops, for SetOps: what an edit begins with.
  Block WithoutOps() const;

  std::int32_t index() const { return index_; }
  std::int32_t parent() const { return parent_; }  // -1 for block 0
  void set_parent(std::int32_t parent) { parent_ = parent; }
  std::int32_t forward_block() const { return forward_block_; }
  bool has_forward_block() const { return has_forward_block_; }  // the field stands in the file
  void set_forward_block(std::int32_t block) {
    forward_block_ = block;
    has_forward_block_ = true;
  }

  const std::vector<OpEntry>& ops() const { return ops_; }
  const std::vector<VarRef>& vars() const { return vars_; }  // in the order of the file or of creation
  const Var* FindVar(std::string_view name) const;           // in this block only; null if absent
  VarRef FindVarRef(std::string_view name) const;
  // Where the variable stands in vars(), -1 if it is not here.
  std::int64_t VarPosition(std::string_view name) const { return var_at_.Find(name, vars_); }
  // The same of many names, for less: of each what has to be read is asked of the memory ahead.
  void VarPositions(std::span<const std::string_view> names, std::span<std::int64_t> positions) const {
    var_at_.FindAll(names, vars_, positions);
  }
  const Op* FindOp(OpId id) const;  // null if it is gone; cost O(1) amortised
  int PositionOf(OpId id) const;    // -1 if it is gone

  // Writers. Positions move; ids do not.
  OpId Append(Op op) { return Insert(static_cast<int>(ops_.size()), std::move(op)); }
  OpId Insert(int position, Op op);
  void Replace(OpId id, Op op);  // keeps the id
  bool Remove(OpId id);
  void SetOps(std::vector<OpEntry> ops);  // splices a whole new order; ids are this block's, each once
  OpId NewId();                           // for an entry to be given to SetOps
  void SetVar(Var var);                   // adds, or replaces the one of that name in place
  void AddVarRef(VarRef var);             // the same, sharing it
  bool AddVar(VarRef var);                // false, and nothing is done, if there is one of that name
  void ReserveVars(std::size_t count);    // room for as many, made at once
  bool RemoveVar(std::string_view name);
  void RemoveVars(
      const std::set<std::string, std::less<>>& names);  // at once: cost of one walk over the variables
  // Renames the variable and every mention of it in this block's ops (op_role_var too). False if there is
  // none.
  bool RenameVar(std::string_view from, const std::string& to);
  // The declaration only. A variable already called `to` gives way.
  bool RenameDeclaration(std::string_view from, const std::string& to);

 private:
  // Positions by the number in the id. Made when first asked for; safe for concurrent readers.
  struct OpIndex {
    std::mutex mutex;
    std::atomic<bool> ready{false};
    std::vector<std::int32_t> at;  // -1: gone
  };
  const OpIndex& op_index() const;
  void PositionsMoved() { op_index_.ready = false; }

  std::int32_t index_;
  std::int32_t parent_;
  std::int32_t forward_block_ = -1;
  bool has_forward_block_ = false;
  std::uint64_t next_op_ = 1;  // with the block's index in the high bits: unique in the program
  std::vector<OpEntry> ops_;
  std::vector<VarRef> vars_;
  NameIndex var_at_;
  mutable OpIndex op_index_;
};

// What stands at the top of a program beside its blocks.
struct ProgramMeta {
  std::string name;
  std::optional<std::int64_t> version;           // Fluid's, 1008005 for 1.8.5; absent in the file if not set
  bool has_version_message = false;              // the message stands in the file, perhaps without a number
  std::optional<std::string> op_compatible_map;  // the message as it was read; absent in the file if not set
  std::int64_t random_seed = 0;
  std::string plan;       // text of the placement plan, in role programs
  std::string job_facts;  // what all role programs of one transpile share (text/job_facts.h)
  // Rows of a variable that its pserver merges, updates and versions together, as the plan decided. In a
  // pserver's program that has a plan, a variable that is not named here is not cut.
  std::map<std::string, std::int64_t> chunk_rows;
  std::map<std::string, std::string> policies;
  std::string unknown_fields;  // kept for writing back
};

class Program {
 public:
  Program();  // one empty block 0

  int block_count() const { return static_cast<int>(blocks_.size()); }
  const Block& block(int index) const { return *blocks_[static_cast<std::size_t>(index)]; }
  const Block& main() const { return block(0); }
  // This program's own copy of the block; made on the first call after a copy.
  Block& MutableBlock(int index);
  Block& AddBlock(int parent);
  void ReplaceBlock(int index, Block block);
  const ProgramMeta& meta() const { return meta_; }
  ProgramMeta& mutable_meta() {
    Touch();
    return meta_;
  }

  // The variable as seen from a block: there, in the block whose gradient it is, or in the blocks around
  // these, the nearest first; null if nowhere.
  const Var* FindVar(int block, std::string_view name) const;
  // The same of many names, for less.
  void FindVars(int block, std::span<const std::string_view> names, std::span<const Var*> found) const;
  // The block that declares it, -1 if none.
  int BlockOfVar(int block, std::string_view name) const;

  // Names this content within the process: an unchanged copy has the same one, any change brings a new one
  // that no other program has. A compiled form may be cached under it.
  std::uint64_t content_id() const { return content_id_; }

 private:
  struct Declared {
    int block = -1;
    const Var* var = nullptr;
  };
  Declared Look(int block, std::string_view name) const;
  void FindFewVars(int block, std::span<const std::string_view> names, std::span<const Var*> found) const;
  void Touch();
  std::vector<std::shared_ptr<Block>> blocks_;
  ProgramMeta meta_;
  std::uint64_t content_id_ = 0;
};

}  // namespace penstock
