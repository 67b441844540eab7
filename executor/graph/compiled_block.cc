#include "executor/graph/compiled_block.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "executor/graph/explain.h"
#include "executor/graph/first_place.h"
#include "executor/graph/halves.h"
#include "executor/graph/row_views.h"
#include "framework/base/near_names.h"
#include "framework/ir/block_uses.h"
#include "framework/op/conform.h"
#include "framework/op/operand_kinds.h"
#include "framework/op/unknown_ops.h"
#include "framework/roles/attr_names.h"
#include "framework/roles/collective_views.h"
#include "framework/roles/views.h"

namespace penstock::exec {
namespace {

// Fluid's saved inference models name their inputs and outputs by these two ops. They become no instructions:
// a feed binds the variable and a fetch reads it.
constexpr char kFeedOp[] = "feed";
constexpr char kFetchOp[] = "fetch";
// Marks the last use of temporaries. It becomes no instruction: the executor finds their last uses itself.
constexpr char kDeleteVarOp[] = "delete_var";

// Whether `op` is the send by which geo-SGD's startup program tells the communicator that it has ended. The
// op needs no instruction: the communicator begins right before the first step.
bool TellsStart(const Op& op) {
  if (roles::CommOf(op) != roles::Comm::kSend) return false;
  const roles::SendView send(op);
  return send.tells_communicator() && send.tells_start();
}

bool HasValue(const Var& var) { return var.type.has_value() || var.kind != VarKind::kTensor; }

class Compiler {
 public:
  Compiler(const OpRegistry& ops, const Program& program, CompileRequest request)
      : ops_(ops), out_(std::make_shared<CompiledBlock>()) {
    out_->program = program;
    out_->block = request.block;
    out_->use = request.use;
    out_->feed_names = std::move(request.feeds);
    out_->fetch_names = std::move(request.fetches);
    keeps_.insert(request.keeps.begin(), request.keeps.end());
  }

  Result<std::shared_ptr<const CompiledBlock>> Compile() {
    PENSTOCK_RETURN_IF_ERROR(AddFeeds());
    int position = -1;
    for (const OpEntry& entry : block().ops()) {
      ++position;
      const Op& op = *entry.op;
      if (op.type() == kFeedOp || op.type() == kFetchOp) {
        NoteFeedOrFetch(op);
        continue;
      }
      if (TellsStart(op)) continue;
      PENSTOCK_RETURN_IF_ERROR(AddInstruction(entry.op, position));
    }
    PENSTOCK_RETURN_IF_ERROR(AddFetches());
    PENSTOCK_RETURN_IF_ERROR(CheckFeedsAreThere());
    std::erase_if(out_->imports, [this](int index) { return slot(index).home == Home::kScope; });
    AddRowViews(*out_);
    NotePeeks();
    MarkOfFirstPlace(*out_);
    for (std::size_t s = 0; s < out_->slots.size(); ++s) {
      const SlotInfo& slot = out_->slots[s];
      if (slot.home == Home::kFeed || (slot.home == Home::kScope && slot.required)) {
        out_->key.push_back(static_cast<int>(s));
        const auto fed = std::ranges::find(out_->feeds, static_cast<int>(s));
        out_->feed_of_key.push_back(fed == out_->feeds.end() ? -1
                                                             : static_cast<int>(fed - out_->feeds.begin()));
      }
    }
    return std::shared_ptr<const CompiledBlock>(std::move(out_));
  }

 private:
  // An op can be asked before the run if its source has its value by then. Of several ops that take from one
  // source, only the first one's answer is that of the run.
  void NotePeeks() {
    std::map<int, int> source_of;  // of the slots that stand for a source
    std::set<int> asked;
    for (std::size_t i = 0; i < out_->instructions.size(); ++i) {
      Instruction& instruction = out_->instructions[i];
      const bool peeks = instruction.def->output_peek() != nullptr;
      if (!peeks && !instruction.def->passes_source_on()) continue;
      if (instruction.inputs.empty() || instruction.inputs.front().size() != 1) continue;
      const int named = instruction.inputs.front().front();
      const auto passed_on = source_of.find(named);
      const int source = passed_on == source_of.end() ? named : passed_on->second;
      if (source < 0 || slot(source).home != Home::kScope || slot(source).written) continue;
      if (!peeks) {
        for (const std::vector<int>& args : instruction.outputs) {
          for (const int out : args) source_of[out] = source;
        }
      } else if (asked.insert(source).second) {
        instruction.peeked = true;
        out_->peeks.push_back({static_cast<int>(i), source});
      }
    }
  }

  const Block& block() const { return out_->program.block(out_->block); }
  SlotInfo& slot(int index) { return out_->slots[static_cast<std::size_t>(index)]; }

  // Returns the slot of a name, which the first call makes; -1 if the name is not declared.
  int SlotOf(const std::string& name) {
    if (const auto it = slot_of_.find(name); it != slot_of_.end()) return it->second;
    const int declared_in = out_->program.BlockOfVar(out_->block, name);
    // Fluid's programs do not declare some variables that an op passes to its block.
    const bool undeclared = declared_in < 0 && keeps_.contains(name);
    if (declared_in < 0 && !undeclared) return -1;
    SlotInfo info;
    info.name = name;
    info.var = undeclared ? std::make_shared<const Var>(ControlVar(name))
                          : out_->program.block(declared_in).FindVarRef(name);
    info.declared_here = undeclared || declared_in == out_->block;
    const bool outer = out_->use == BlockUse::kNested && !info.declared_here;
    info.local = info.declared_here && keeps_.contains(name);
    if (info.var->persistable || outer || info.local) info.home = Home::kScope;
    const int index = static_cast<int>(out_->slots.size());
    out_->slots.push_back(std::move(info));
    slot_of_.emplace(name, index);
    return index;
  }

  Status AddFeeds() {
    for (const std::string& name : out_->feed_names) {
      if (slot_of_.contains(name)) return InvalidArgument("E-feed-twice", "feed: ", name, " is given twice");
      const int index = SlotOf(name);
      if (index < 0) {
        return Unknown("E-feed-unknown", "feed", name);
      }
      slot(index).home = Home::kFeed;
      out_->feeds.push_back(index);
    }
    return OkStatus();
  }

  Status Unknown(const char* id, const char* what, const std::string& name) const {
    Status status = InvalidArgument(id, what, ": ", name, " is not a variable of the program");
    std::vector<std::string_view> known;
    for (const VarRef& var : block().vars()) known.push_back(var->name);
    const std::vector<std::string_view> near = NearNames(name, known);
    if (!near.empty()) status.With(StrCat("note: variables with a similar name: ", Join(near, ", ")));
    return status;
  }

  void NoteFeedOrFetch(const Op& op) {
    auto& columns = op.type() == kFeedOp ? feed_columns_ : fetch_columns_;
    const std::string& name = op.type() == kFeedOp ? op.OutputName("Out") : op.InputName("X");
    const Attr* column = op.FindAttr("col");
    const auto number = column == nullptr ? std::nullopt : ConvertAttr(*column, AttrKind::kInt);
    columns.emplace_back(number ? std::get<std::int32_t>(*number) : 0, name);
  }

  Status AddInstruction(const OpRef& op, int position) {
    const auto explain = [&](Status status) {
      return ExplainOp(std::move(status), out_->program, out_->block, position);
    };
    Result<const OpDef*> def = ops_.Require(*op);
    if (!def.ok()) {
      return explain(std::move(def).status())
          .With(StrCat("note: all ops of the program that are not known: ", UnknownOps(ops_, out_->program)));
    }
    if (Status status = (*def)->CheckOp(*op); !status.ok()) return explain(std::move(status));
    const bool next = roles::RecvView(*op).next_version();
    if (next || roles::BarrierView(*op).leaves_pulls()) {
      return explain(InvalidArgument("E-op-attr", op->type(), ": attribute ",
                                     next ? roles::attr::kNextVersion : roles::attr::kLeavesPulls,
                                     " is set by the executor's plan; remove it from the program"));
    }

    Instruction instruction;
    std::optional<Op> conformed = Conformed(**def, *op);
    instruction.op = conformed ? std::make_shared<const Op>(*std::move(conformed)) : op;
    instruction.def = *def;
    instruction.position = position;
    instruction.of_first_place = roles::IsOfFirstPlace(*op);
    PENSTOCK_RETURN_IF_ERROR(Resolve(op->inputs(), position, instruction.inputs));
    PENSTOCK_RETURN_IF_ERROR(Resolve(op->outputs(), position, instruction.outputs));
    if (op->type() == kDeleteVarOp) return OkStatus();
    const int at = static_cast<int>(out_->instructions.size());
    const bool starts_blocks = StartsBlocks(**def, *op);
    const Effects effects = instruction.def->effects();
    instruction.starts_blocks = starts_blocks;
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
      const bool reads_elements = ReadsElements(instruction, i);
      for (const int index : instruction.inputs[i]) {
        if (index < 0) continue;
        // A variable that an op's blocks carry from round to round has no value at the start, unless an
        // earlier op wrote it.
        const bool carried = starts_blocks && Names(instruction.outputs, index);
        NoteRead(slot(index), at, starts_blocks, carried, effects);
        if (reads_elements) slot(index).last_use = at;
      }
    }
    for (const auto& args : instruction.outputs) {
      for (const int index : args) {
        if (index < 0) continue;
        NoteWrite(slot(index), at);
        // A recv's answer may arrive long after the op has ended, and blocks may replace the variables they
        // write.
        slot(index).kept |= effects.MayHoldArguments() || starts_blocks;
        slot(index).written_by_block |= starts_blocks;
      }
    }
    if (starts_blocks) {
      if (Status status = Import(*op, at); !status.ok()) return explain(std::move(status));
    }
    out_->effects |= effects;
    out_->instructions.push_back(std::move(instruction));
    return OkStatus();
  }

  // Keeps the variables of this block that the blocks of `op` mention alive and in place until the op ends.
  Status Import(const Op& op, int at) {
    for (const int started : StartedBlocks(op)) {
      if (started < 0 || started >= out_->program.block_count()) {
        return InvalidArgument("E-block-index", op.type(), ": an attribute names block ", started,
                               "; the program has ", out_->program.block_count(), " blocks");
      }
      PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> names, OuterNames(out_->program, started));
      for (const std::string& name : names) {
        const auto it = slot_of_.find(name);
        if (it == slot_of_.end()) continue;
        slot(it->second).last_use = at;
        slot(it->second).kept = true;
        if (imported_.insert(it->second).second) out_->imports.push_back(it->second);
      }
    }
    return OkStatus();
  }

  Status Resolve(const std::vector<Slot>& slots, int position, std::vector<std::vector<int>>& out) {
    for (const Slot& named : slots) {
      std::vector<int>& row = out.emplace_back();
      for (const std::string& name : named.args) {
        const int index = name == kEmptyVarName ? -1 : SlotOf(name);
        if (index < 0 && name != kEmptyVarName) {
          return ExplainOp(InvalidArgument("E-var-undeclared",
                                           block().ops()[static_cast<std::size_t>(position)].op->type(), ": ",
                                           named.name, " names ", name, ", which is not declared"),
                           out_->program, out_->block, position);
        }
        row.push_back(index);
      }
    }
    return OkStatus();
  }

  static bool Names(const std::vector<std::vector<int>>& arguments, int index) {
    return std::any_of(arguments.begin(), arguments.end(), [index](const std::vector<int>& row) {
      return std::find(row.begin(), row.end(), index) != row.end();
    });
  }

  void NoteRead(SlotInfo& slot, int at, bool starts_blocks, bool carried, Effects effects) {
    // A variable in use after the op's Run (a send in flight), or read by other blocks, cannot share the
    // arena.
    slot.kept |= effects.MayHoldArguments() || starts_blocks;
    if (slot.written || slot.home == Home::kFeed || !HasValue(*slot.var)) return;
    if (slot.home == Home::kFrame && !carried) slot.home = Home::kScope;
    if (starts_blocks || slot.required) return;
    // A raw variable is state that a kernel keeps between its runs, and makes itself in the first run.
    if (slot.var->kind == VarKind::kRaw && !effects.AreOutside()) return NoteWrite(slot, at);
    slot.required = true;
    slot.required_by = at;
  }

  void NoteWrite(SlotInfo& slot, int at) {
    slot.written = true;
    slot.last_use = at;
    if (slot.first_write < 0) slot.first_write = at;
  }

  Status AddFetches() {
    if (out_->fetch_names.empty()) {
      std::stable_sort(fetch_columns_.begin(), fetch_columns_.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      for (const auto& [column, name] : fetch_columns_) out_->fetch_names.push_back(name);
    }
    for (const std::string& name : out_->fetch_names) {
      const int index = SlotOf(name);
      if (index < 0) return Unknown("E-fetch-unknown", "fetch", name);
      SlotInfo& fetched = slot(index);
      if (!HasValue(*fetched.var)) {
        return InvalidArgument("E-fetch-unknown", "fetch: ", name, " is a control variable and has no value");
      }
      if (!fetched.written && fetched.home != Home::kFeed) {
        fetched.home = Home::kScope;
        fetched.required = true;
      }
      fetched.kept = true;
      out_->fetches.push_back(index);
    }
    return OkStatus();
  }

  // Requires that the caller feeds every data variable: a scope variable of the same name is not used
  // instead.
  Status CheckFeedsAreThere() {
    if (out_->use == BlockUse::kNested) return OkStatus();  // the outer block has the feeds
    for (const auto& [column, name] : feed_columns_) {
      const auto it = slot_of_.find(name);
      if (it == slot_of_.end() || slot(it->second).home == Home::kFeed) continue;
      if (slot(it->second).required) return MissingFeed(slot(it->second));
    }
    for (const SlotInfo& slot : out_->slots) {
      const bool data = slot.var->facts.is_data || slot.var->need_check_feed;
      if (data && slot.required && slot.home == Home::kScope && !slot.var->persistable)
        return MissingFeed(slot);
    }
    return OkStatus();
  }

  Status MissingFeed(const SlotInfo& slot) const {
    Status status =
        InvalidArgument("E-feed-missing", "feed: ", slot.name, " : ", TypeText(*slot.var), " was not fed");
    if (slot.required_by < 0) return status;
    const int position = out_->instructions[static_cast<std::size_t>(slot.required_by)].position;
    return ExplainOp(std::move(status), out_->program, out_->block, position);
  }

  const OpRegistry& ops_;
  std::shared_ptr<CompiledBlock> out_;
  std::unordered_map<std::string, int> slot_of_;
  std::set<std::string> keeps_;
  std::set<int> imported_;
  std::vector<std::pair<std::int32_t, std::string>> feed_columns_, fetch_columns_;
};

}  // namespace

bool ReadsElements(const Instruction& instruction, std::size_t i) {
  const SlotDef* const read = instruction.def->FindInput(instruction.op->inputs()[i].name);
  return read == nullptr || !read->shape_only;
}

Result<std::shared_ptr<const CompiledBlock>> CompileBlock(const OpRegistry& ops, const Program& program,
                                                          CompileRequest request) {
  if (request.block < 0 || request.block >= program.block_count()) {
    return InvalidArgument("E-run-block", "block ", request.block, " does not exist; the program has ",
                           program.block_count());
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Program computed, ComputeHalvesInFloat(ops, program, request.block));
  return Compiler(ops, computed, std::move(request)).Compile();
}

}  // namespace penstock::exec
