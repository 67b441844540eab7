// The edits of one pass, collected and applied at once. Positions are named by OpId, so edits do not disturb
// each other.
//
//   ProgramEdit edit(in);
//   BlockEdit& main = edit.main();
//   const std::optional<OpId> writer = main.LastWriter("w@GRAD");
//   OpId at = main.InsertAfter(*writer, MakeSplit(...));
//   main.Append(MakeSendBarrier(...));
//   return edit.Apply();
//
// Ops inserted at the same place stand in the order of the calls. Ops inserted before or after a removed op
// take its place.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/base/view_map.h"
#include "framework/ir/def_use.h"
#include "framework/ir/program.h"

namespace penstock {

class BlockEdit {
 public:
  // The block as it was when the edit began.
  const Block& before() const;
  // As edited so far: the op after replacements, null once removed.
  const Op* FindOp(OpId id) const;

  // These refer to the ops of the block before the edit.
  std::optional<OpId> LastWriter(std::string_view var) const;
  const DefUse& def_use() const;

  OpId InsertAfter(OpId at, Op op);
  OpId InsertBefore(OpId at, Op op);
  OpId Append(Op op);
  void Replace(OpId id, Op op);
  void Remove(OpId id);

  void SetVar(Var var);
  void RemoveVar(std::string_view name);
  // When the edit is applied, `from` becomes `to` in its declaration and everywhere in this block's ops,
  // inserted ops included.
  void RenameVar(std::string from, std::string to);
  const Var* FindVar(std::string_view name) const;  // as edited so far (renames not applied)

 private:
  friend class ProgramEdit;
  struct Inserted {
    OpId id;
    OpRef op;
  };
  // The changes at one op of the block, or around an inserted op.
  struct Change {
    std::vector<Inserted> before, after;
    OpRef replacement;
    bool removed = false;
  };
  explicit BlockEdit(const Block& block);
  Inserted Insert(Op op);
  std::size_t ChangesAt(OpId id) const;     // index into change_at_; its size if the id is unknown
  Change& ChangeOf(OpId id);                // made if there is none
  const Change* FindChange(OpId id) const;  // null if there is none
  const Change* ChangeAt(std::size_t at) const;
  void Place(const OpEntry& entry, const Change* change, std::vector<OpEntry>& out) const;
  void PlaceAll(const std::vector<Inserted>& inserted, std::vector<OpEntry>& out) const;
  Block Apply() &&;

  const Block& before_;  // the program's own; outlives the edit
  Block after_;          // variables are edited here directly
  std::vector<Change> changes_;
  // For each op, the index of its change in changes_, or -1. The block's ops come first, by position; the
  // inserted ops follow.
  std::vector<std::int32_t> change_at_;
  bool all_known_ = true;  // each change belongs to an op of the block or to an inserted op
  std::vector<Inserted> appended_;
  OpId first_inserted_ = OpId::kNone;  // inserted ops get consecutive ids
  std::uint64_t inserted_count_ = 0;
  std::set<std::string, std::less<>> removed_vars_;
  std::map<std::string, std::string, std::less<>> renames_;
  mutable std::optional<DefUse> def_use_;
  mutable ViewMap<OpId> last_writers_;  // made when first asked for
};

class ProgramEdit {
 public:
  explicit ProgramEdit(const Program& in) : out_(in) {}
  BlockEdit& main() { return block(0); }
  BlockEdit& block(int index);
  // A new, empty block of the result. Fill it through MutableBlock of the result or block(index).
  int AddBlock(int parent);
  ProgramMeta& meta() { return out_.mutable_meta(); }
  // Applies all edits and uses up the object. Fails if an edit names an op that never existed.
  Result<Program> Apply();

 private:
  Program out_;
  std::map<int, std::unique_ptr<BlockEdit>> blocks_;
};

}  // namespace penstock
