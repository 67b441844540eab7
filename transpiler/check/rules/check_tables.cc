// Tables whose rows are requested: every request goes to the pserver that holds the shard or slice, and that
// shard or slice is the one that is updated.
#include <algorithm>

#include "framework/ir/mentions.h"
#include "framework/text/printer.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

class TableRules {
 public:
  TableRules(const RoleFacts& facts, Findings& findings) : facts_(facts), findings_(findings) {}

  void Run() {
    for (const TrainerFacts& trainer : facts_.trainers) {
      trainer_ = &trainer;
      for (const Lookup& lookup : trainer.lookups) {
        if (lookup.cut == Cut::kByRows) CheckRanges(lookup);
        if (lookup.cut == Cut::kById) CheckById(lookup);
      }
    }
    for (const PserverFacts& pserver : facts_.pservers) CheckServer(pserver);
  }

 private:
  void Error(std::string id, std::string message, const Op* op) {
    findings_.Error(std::move(id), *trainer_->file, std::move(message), op);
  }

  const PserverFacts* ServerOf(const Lookup& lookup, const Piece& piece) {
    if (piece.to != nullptr) return piece.to;
    Error("E-check-address",
          StrCat("asks for rows of ", piece.remote, piece.has_address ? " at " : " without an address",
                 piece.pserver, piece.has_address ? ", but no pserver of the set has that address" : ""),
          lookup.op);
    return nullptr;
  }

  void CheckRanges(const Lookup& lookup) {
    const Var* table = trainer_->file->program.FindVar(0, lookup.table);
    Dim rows = 0;
    for (const Piece& piece : lookup.pieces) {
      rows = rows == kUnknownDim || piece.rows == kUnknownDim ? kUnknownDim : rows + piece.rows;
      const PserverFacts* pserver = ServerOf(lookup, piece);
      if (pserver == nullptr) continue;
      const Var* there = piece.there;
      if (there == nullptr || !there->persistable) {
        Error("E-check-unknown-piece",
              StrCat("asks ", piece.pserver, " for rows of ", piece.remote, ", which it does not hold"),
              lookup.op);
      } else if (there->type && table != nullptr && table->type && there->type->dtype != table->type->dtype) {
        Error("E-check-message-type",
              StrCat(lookup.table, " holds ", DTypeName(table->type->dtype), " here, but ", piece.remote, " ",
                     DTypeName(there->type->dtype), " in ", pserver->file->file),
              lookup.op);
      } else if (there->type && there->shape().rank() > 0 && !Compatible(there->shape()[0], piece.rows)) {
        Error("E-check-table-rows",
              StrCat("takes ", piece.remote, " to have ", piece.rows, " rows; at ", piece.pserver, " it has ",
                     there->shape()[0]),
              lookup.op);
      }
    }
    const auto given = roles::LookupView(*lookup.op).heights().size();
    if (given != lookup.pieces.size()) {
      Error("E-check-table-rows",
            StrCat("names ", lookup.pieces.size(), " slices of ", lookup.table, " with ", given,
                   " numbers of rows"),
            lookup.op);
    } else if (table != nullptr && table->type && table->shape().rank() > 0 &&
               !Compatible(rows, table->shape()[0])) {
      Error("E-check-table-rows",
            StrCat("the slices of ", lookup.table, " have ", rows, " rows together; it has ",
                   table->shape()[0]),
            lookup.op);
    }
    CheckAsksLikeGradient(lookup);
  }

  // The trainer still computes the gradient of a lookup: that op has the ids and padding_idx.
  void CheckAsksLikeGradient(const Lookup& lookup) {
    const auto& ids = lookup.op->Input("Ids");
    if (ids.size() != lookup.op->Output("Outputs").size()) {
      Error("E-check-lookup",
            StrCat("looks up ", ids.size(), " variables of ids into ", lookup.op->Output("Outputs").size(),
                   " outputs"),
            lookup.op);
    }
    CheckAllLookedUp(lookup);
    const auto padding = roles::LookupView(*lookup.op).padding();
    std::set<std::int64_t> paddings;
    for (const OpEntry& entry : trainer_->file->program.main().ops()) {
      const Op& op = *entry.op;
      if (!Has(op.role(), OpRole::kBackward) || op.InputName("W") != lookup.table) continue;
      if (std::find(ids.begin(), ids.end(), op.InputName("Ids")) == ids.end()) continue;
      if (const auto* own = op.Get<std::int64_t>("padding_idx")) paddings.insert(*own);
    }
    if (paddings.empty() || paddings.contains(padding)) return;
    Error("E-check-lookup",
          StrCat("looks up with padding_idx ", padding, ", but the gradient is computed with ",
                 *paddings.begin()),
          lookup.op);
  }

  // One of the table's lookups has looked up the rows that have a gradient.
  void CheckAllLookedUp(const Lookup& lookup) {
    ViewSet asked;
    for (const Lookup& one : trainer_->lookups) {
      if (one.table != lookup.table) continue;
      const auto& ids = one.op->Input("Ids");
      asked.insert(ids.begin(), ids.end());
    }
    for (const OpEntry& entry : trainer_->file->program.main().ops()) {
      const Op& op = *entry.op;
      const std::string& ids = op.InputName("Ids");
      if (!Has(op.role(), OpRole::kBackward) || op.InputName("W") != lookup.table || ids.empty()) continue;
      if (asked.contains(ids)) continue;
      Error("E-check-lookup",
            StrCat("computes a gradient for rows ", ids, " of ", lookup.table, ", which are not looked up"),
            &op);
    }
  }

  void CheckById(const Lookup& lookup) {
    if (lookup.split == nullptr || lookup.split->Output("Out") != lookup.op->Input("X")) {
      Error("E-check-prefetch", "asks for ids that one split_ids did not shard in its order", lookup.op);
      return;
    }
    if (lookup.merge == nullptr || lookup.merge->Input("Rows") != lookup.op->Input("X") ||
        lookup.merge->Input("Ids") != lookup.split->Input("Ids") ||
        lookup.merge->Input("Ids").size() != lookup.merge->Output("Out").size()) {
      Error("E-check-prefetch", "asks for rows that no merge_ids puts back in the order of the ids",
            lookup.merge != nullptr ? lookup.merge : lookup.op);
    }
    first_answer_ = nullptr;
    for (std::size_t i = 0; i < lookup.pieces.size(); ++i) {
      const PserverFacts* pserver = ServerOf(lookup, lookup.pieces[i]);
      if (pserver == nullptr) continue;
      CheckShard(lookup, lookup.pieces[i], *pserver, static_cast<int>(i));
    }
    CheckAllShards(lookup);
  }

  void CheckShard(const Lookup& lookup, const Piece& piece, const PserverFacts& pserver, int shard) {
    const auto it = pserver.prefetch_blocks.find(piece.remote);
    if (it == pserver.prefetch_blocks.end()) {
      Error(
          "E-check-prefetch",
          StrCat("asks ", piece.pserver, " for the rows of ", piece.remote, ", which no block there answers"),
          lookup.op);
      return;
    }
    CheckAnswerFits(lookup, piece, pserver, it->second, shard);
    const int id = pserver.said().number().value_or(shard);
    if (id != shard) {
      Error("E-check-prefetch",
            StrCat("sends ids of shard ", shard, " to ", piece.pserver, ", which is pserver ", id),
            lookup.op);
    }
  }

  // The block reads the requested ids, and writes the answer under the name that the trainer awaits.
  void CheckAnswerFits(const Lookup& lookup, const Piece& piece, const PserverFacts& pserver, int block,
                       int shard) {
    const Program& program = pserver.file->program;
    const auto& awaited = lookup.op->Output("Out");
    const auto at = static_cast<std::size_t>(shard);
    if (block < 1 || block >= program.block_count() || at >= awaited.size()) return;
    for (const OpEntry& entry : program.block(block).ops()) {
      const std::string& answer = entry.op->OutputName("Out");
      if (entry.op->InputName("Ids") != piece.remote) continue;
      if (answer != awaited[at]) {
        Error("E-check-prefetch",
              StrCat("awaits ", awaited[at], " from ", piece.pserver, ", which answers with ", answer),
              lookup.op);
      }
      CompareTypes(lookup, piece.local, pserver, block, piece.remote);
      CompareTypes(lookup, awaited[at], pserver, block, answer);
      CompareAnswers(pserver, *entry.op);
    }
  }

  // All shards use the same padding id.
  void CompareAnswers(const PserverFacts& pserver, const Op& answer) {
    if (first_answer_ == nullptr) first_answer_ = &answer;
    const auto own = answer.GetOr<std::int64_t>("padding_idx", -1);
    const auto other = first_answer_->GetOr<std::int64_t>("padding_idx", -1);
    if (own == other || !odd_answers_.insert(&answer).second) return;
    findings_.Error("E-check-prefetch", *pserver.file,
                    StrCat("answers for rows of ", answer.InputName("W"), " with padding_idx ", own,
                           ", the first shard with ", other),
                    &answer);
  }

  void CompareTypes(const Lookup& lookup, std::string_view here, const PserverFacts& pserver, int block,
                    std::string_view there) {
    const Var* own = trainer_->file->program.main().FindVar(here);
    const Var* other = pserver.file->program.FindVar(block, there);
    if (own == nullptr || other == nullptr || !own->type || !other->type) return;
    if (own->kind == other->kind && own->type->dtype == other->type->dtype &&
        Compatible(own->shape(), other->shape()))
      return;
    Error("E-check-message-type",
          StrCat(here, " is ", PrintVarType(*own), " here, but ", there, " is ", PrintVarType(*other), " in ",
                 pserver.file->file),
          lookup.op);
  }

  // Ids are sharded over all pservers that hold a shard, and gradients in the same order.
  void CheckAllShards(const Lookup& lookup) {
    std::vector<std::string_view> asked;
    for (const Piece& piece : lookup.pieces) asked.push_back(piece.pserver);
    for (const PserverFacts& pserver : facts_.pservers) {
      const bool holds = std::any_of(pserver.updates.begin(), pserver.updates.end(),
                                     [](const UpdateBlock& update) { return update.by_id; }) ||
                         !pserver.prefetch_blocks.empty();
      if (!holds || std::find(asked.begin(), asked.end(), pserver.address) != asked.end()) continue;
      Error("E-check-table-shard",
            StrCat("never asks ", pserver.address, ", which holds a shard of the table"), lookup.op);
    }
    for (const Transfer& send : trainer_->sends) {
      if (send.cut != Cut::kById) continue;
      std::vector<std::string_view> told;
      for (const Piece& piece : send.pieces) told.push_back(piece.pserver);
      if (told == asked) continue;
      Error("E-check-table-shard",
            StrCat("shards gradients over ", Join(told, ", "), " but ids over ", Join(asked, ", ")), send.op);
    }
  }

  // A requested or saved shard is updated here, and these blocks are children of the update's block.
  void CheckServer(const PserverFacts& pserver) {
    const Program& program = pserver.file->program;
    for (const std::string& entry : pserver.said().lookup_blocks()) {
      if (roles::ParseNamedBlock(entry)) continue;
      findings_.Error("E-check-prefetch", *pserver.file,
                      StrCat("prefetch_var_name_to_block_id has ", Quote(entry), ", which is not ids:block"),
                      pserver.serve);
    }
    for (const auto& [ids, block] : pserver.prefetch_blocks) {
      if (block < 1 || block >= program.block_count()) {
        findings_.Error("E-check-block", *pserver.file,
                        StrCat("prefetch block ", block, " does not exist; the program has blocks 0 to ",
                               program.block_count() - 1),
                        pserver.serve);
        continue;
      }
      CheckAnswer(pserver, ids, block);
    }
    for (const UpdateBlock& update : pserver.updates) {
      if (!update.by_id || !pserver.prefetch_blocks.empty()) continue;
      findings_.Error("E-check-prefetch", *pserver.file,
                      StrCat("updates a shard of ", update.param, ", but answers no lookup of it"),
                      pserver.serve);
    }
    const int saved = pserver.checkpoint_block;
    if (saved == -1) return;
    const bool writes = saved > 0 && saved < program.block_count() && !program.block(saved).ops().empty();
    if (!writes) {
      findings_.Error("E-check-block", *pserver.file, StrCat("checkpoint block ", saved, " saves nothing"),
                      pserver.serve);
      return;
    }
    const std::string& table = program.block(saved).ops().front().op->InputName("X");
    if (const UpdateBlock* update = pserver.UpdateOf(table)) return CheckParent(pserver, saved, *update);
    findings_.Error(
        "E-check-block", *pserver.file,
        StrCat("checkpoint block ", saved, " saves ", Quote(table), ", which is not updated here"),
        program.block(saved).ops().front().op.get());
  }

  // A block that uses a shard, other than its update, is a child of the update's block.
  void CheckParent(const PserverFacts& pserver, int block, const UpdateBlock& update) {
    const int parent = pserver.file->program.block(block).parent();
    if (parent == update.block) return;
    findings_.Error("E-check-parent", *pserver.file,
                    StrCat("block ", block, " has parent ", parent, "; it must be block ", update.block,
                           ", which updates ", update.param),
                    pserver.serve);
  }

  void CheckAnswer(const PserverFacts& pserver, const std::string& ids, int block) {
    for (const OpEntry& entry : pserver.file->program.block(block).ops()) {
      if (!Reads(*entry.op, ids)) continue;
      const std::string& table = entry.op->InputName("W");
      const UpdateBlock* update = pserver.UpdateOf(table);
      const bool one = std::all_of(entry.op->inputs().begin(), entry.op->inputs().end(),
                                   [](const Slot& slot) { return slot.args.size() <= 1; }) &&
                       entry.op->OutputNames().size() == 1;
      if (!one) {
        findings_.Error("E-check-prefetch", *pserver.file,
                        StrCat("block ", block, " must answer one variable of ids with one of rows"),
                        entry.op.get());
      }
      if (update == nullptr) {
        findings_.Error("E-check-prefetch", *pserver.file,
                        StrCat("answers with rows of ", Quote(table), ", which no block here updates"),
                        entry.op.get());
      } else {
        CheckParent(pserver, block, *update);
      }
      if (entry.op->GetOr<bool>("is_test", false)) {
        findings_.Error("E-check-prefetch", *pserver.file,
                        "answers with zeros for rows that are still to be made", entry.op.get());
      }
      return;
    }
    findings_.Error("E-check-prefetch", *pserver.file,
                    StrCat("block ", block, " is to answer for ", ids, ", but does not read it"),
                    pserver.serve);
  }

  const RoleFacts& facts_;
  Findings& findings_;
  const TrainerFacts* trainer_ = nullptr;
  const Op* first_answer_ = nullptr;  // of the current lookup
  std::set<const Op*> odd_answers_;   // already reported, for any trainer
};

}  // namespace

void CheckTables(const RoleFacts& facts, Findings& findings) { TableRules(facts, findings).Run(); }

}  // namespace penstock::check
