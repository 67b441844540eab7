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
  // Returns a copy of the block without ops. ProgramEdit starts from it and then calls SetOps.
  Block WithoutOps() const;

  std::int32_t index() const { return index_; }
  std::int32_t parent() const { return parent_; }  // -1 for block 0
  void set_parent(std::int32_t parent) { parent_ = parent; }
  std::int32_t forward_block() const { return forward_block_; }
  bool has_forward_block() const { return has_forward_block_; }  // the field is present in the file
  void set_forward_block(std::int32_t block) {
    forward_block_ = block;
    has_forward_block_ = true;
  }

  const std::vector<OpEntry>& ops() const { return ops_; }
  const std::vector<VarRef>& vars() const { return vars_; }  // in the order of the file or of creation
  const Var* FindVar(std::string_view name) const;           // in this block only; null if absent
  VarRef FindVarRef(std::string_view name) const;
  // The position in vars(), -1 if this block does not declare it.
  std::int64_t VarPosition(std::string_view name) const { return var_at_.Find(name, vars_); }
  // Looks up many names, faster than one by one: their memory accesses overlap.
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
  void SetOps(std::vector<OpEntry> ops);  // replaces all ops; ids are this block's, each at most once
  OpId NewId();                           // for an entry to be given to SetOps
  void SetVar(Var var);                   // adds the variable, or replaces a variable of its name in place
  void AddVarRef(VarRef var);             // the same, sharing the declaration
  bool AddVar(VarRef var);                // returns false and does nothing if the name is taken
  void ReserveVars(std::size_t count);    // reserves memory
  bool RemoveVar(std::string_view name);
  // Removes all of them in one walk over the variables.
  void RemoveVars(const std::set<std::string, std::less<>>& names);
  // Renames the variable and every use in this block's ops (op_role_var too). Returns false if there is no
  // such variable.
  bool RenameVar(std::string_view from, const std::string& to);
  // Renames the declaration only. A variable already called `to` is removed.
  bool RenameDeclaration(std::string_view from, const std::string& to);

 private:
  // Positions by the number in the id. Built on first use; safe for concurrent readers.
  struct OpIndex {
    std::mutex mutex;
    std::atomic<bool> ready{false};
    std::vector<std::int32_t> at;  // -1: the op was removed
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

// A program's own fields, beside its blocks.
struct ProgramMeta {
  std::string name;
  std::optional<std::int64_t> version;           // Fluid's, 1008005 for 1.8.5; absent in the file if not set
  bool has_version_message = false;              // the message is in the file, perhaps without a number
  std::optional<std::string> op_compatible_map;  // the message as it was read; absent in the file if not set
  std::int64_t random_seed = 0;
  std::string plan;       // text of the placement plan, in role programs
  std::string job_facts;  // facts shared by all role programs of one transpile (text/job_facts.h)
  // Chunk sizes that the plan chose: rows of a variable that its pserver merges, updates and versions as one
  // unit. In a pserver's program with a plan, a variable that is absent here is one chunk.
  std::map<std::string, std::int64_t> chunk_rows;
  std::map<std::string, std::string> policies;
  std::string unknown_fields;  // kept so that they are written back
};

class Program {
 public:
  Program();  // one empty block 0

  int block_count() const { return static_cast<int>(blocks_.size()); }
  const Block& block(int index) const { return *blocks_[static_cast<std::size_t>(index)]; }
  const Block& main() const { return block(0); }
  // This program's own copy of the block; copied on the first call after the program was copied.
  Block& MutableBlock(int index);
  Block& AddBlock(int parent);
  void ReplaceBlock(int index, Block block);
  const ProgramMeta& meta() const { return meta_; }
  ProgramMeta& mutable_meta() {
    Touch();
    return meta_;
  }

  // The variable visible from a block: declared there, in the block whose gradient it is, or in an enclosing
  // block, the nearest first; null if there is none.
  const Var* FindVar(int block, std::string_view name) const;
  // Looks up many names, faster than one by one.
  void FindVars(int block, std::span<const std::string_view> names, std::span<const Var*> found) const;
  // The block that declares the variable, -1 if none does.
  int BlockOfVar(int block, std::string_view name) const;

  // Identifies this content within the process: an unchanged copy has the same id, and each change gives a
  // new one that no other program has. Use it as the key of cached compiled forms.
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
