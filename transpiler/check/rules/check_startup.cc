// A variable that a role reads before it writes it has exactly one initial value, of the right type and
// shape.
#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "framework/text/other_starts.h"
#include "framework/text/printer.h"
#include "transpiler/check/facts/facts.h"

namespace penstock::check {
namespace {

class StartupRules {
 public:
  StartupRules(const RoleFacts& facts, Findings& findings) : facts_(facts), findings_(findings) {}

  void Run() {
    for (const PserverFacts& pserver : facts_.pservers) {
      if (pserver.startup == nullptr) continue;
      Use(*pserver.file, *pserver.startup, false);
      CheckStarted(ReadFirst(ServedBlocks(pserver), GivenTo(pserver)));
      CheckOnlyUsed();
    }
    for (const TrainerFacts& trainer : facts_.trainers) {
      if (trainer.startup == nullptr) continue;
      Use(*trainer.file, *trainer.startup, true);
      CheckStarted(ReadFirst({0}, {}));
      CheckFetchedAtStart(trainer);
      CheckJoined(trainer);
    }
  }

 private:
  void Use(const RoleProgram& main, const RoleProgram& startup, bool is_fed) {
    main_ = &main;
    startup_ = &startup;
    is_fed_ = is_fed;
    writers_.clear();
    for (const OpEntry& entry : startup.program.main().ops()) {
      for (const Slot& slot : entry.op->outputs()) {
        for (const std::string& name : slot.args) writers_[name].push_back(entry.op.get());
      }
    }
  }

  void Error(std::string id, std::string message, const Op* op) {
    findings_.Error(std::move(id), *startup_, std::move(message), op);
  }

  // The blocks that a pserver runs, in an order in which it may run them.
  static std::vector<int> ServedBlocks(const PserverFacts& pserver) {
    std::vector<int> blocks;
    std::unordered_set<int> known;
    const auto add = [&](int block) {
      if (block > 0 && block < pserver.file->program.block_count() && known.insert(block).second)
        blocks.push_back(block);
    };
    add(pserver.lr_block);
    for (const BlockRef block : pserver.blocks) add(block.index);
    for (const auto& [ids, block] : pserver.prefetch_blocks) add(block);
    add(pserver.checkpoint_block);
    return blocks;
  }

  // Variables that arrive from other processes.
  static ViewSet GivenTo(const PserverFacts& pserver) {
    ViewSet given(pserver.received.begin(), pserver.received.end());
    for (const UpdateBlock& update : pserver.updates)
      given.insert(update.consumes.begin(), update.consumes.end());
    for (const auto& [ids, block] : pserver.prefetch_blocks) given.insert(ids);
    return given;
  }

  // Variables that are read before any op writes them, by name, with the reading op.
  using Readers = std::vector<std::pair<std::string_view, const Op*>>;
  Readers ReadFirst(const std::vector<int>& blocks, ViewSet written) const {
    std::vector<Read> reads;
    for (const int block : blocks) ReadFirstIn(block, written, reads);
    std::vector<InBlock> names;
    names.reserve(reads.size());
    for (const Read& one : reads) names.push_back(one.what);
    const std::vector<const Var*> vars = FindVars(main_->program, names);
    ViewMap<const Op*> read;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      if (MustStart(reads[i].what, vars[i])) read.try_emplace(reads[i].what.name, reads[i].op);
    }
    Readers sorted(read.begin(), read.end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return sorted;
  }

  struct Read {
    InBlock what;
    const Op* op;
  };

  void ReadFirstIn(int block, ViewSet& written, std::vector<Read>& read) const {
    const Program& program = main_->program;
    for (const OpEntry& entry : program.block(block).ops()) {
      const Op& op = *entry.op;
      for (const Slot& slot : op.inputs()) {
        for (const std::string& name : slot.args) {
          if (!written.contains(name)) read.push_back({{block, name}, &op});
        }
      }
      for (const NamedAttr& attr : op.attrs()) {
        if (!op.may_name_blocks()) break;
        const auto* inner = std::get_if<BlockRef>(&attr.value);
        if (inner != nullptr && inner->index > block && inner->index < program.block_count())
          ReadFirstIn(inner->index, written, read);
      }
      for (const Slot& slot : op.outputs()) written.insert(slot.args.begin(), slot.args.end());
    }
  }

  // A trainer's unwritten temporaries are fed, whichever block reads them. A pserver is fed only variables
  // local to a block, such as the number of the trainer that it serves. A variable that the startup program
  // initializes should be persistable.
  bool MustStart(const InBlock& read, const Var* var) const {
    if (var == nullptr || !var->type) return false;
    const bool lasts = var->persistable && !(is_fed_ && var->facts.is_data);  // a feed may be marked so
    return lasts || writers_.contains(read.name) ||
           (!is_fed_ && read.block != 0 && main_->program.BlockOfVar(read.block, read.name) == 0);
  }

  void CheckStarted(const Readers& read) {
    std::vector<std::string_view> names;
    names.reserve(read.size());
    for (const auto& [name, reader] : read) names.push_back(name);
    std::vector<const Var*> wanted(names.size()), given(names.size());
    main_->program.FindVars(0, names, wanted);
    startup_->program.FindVars(0, names, given);
    for (std::size_t i = 0; i < read.size(); ++i) {
      const auto& [name, reader] = read[i];
      const auto writer = writers_.find(name);
      if (writer == writers_.end()) {
        if (AnotherStarts(name, startup_->program.meta())) continue;
        Error("E-check-no-start", StrCat("gives no value to ", name, ", which ", main_->file, " reads"),
              reader);
        continue;
      }
      CheckValue(name, wanted[i], given[i], *writer->second.back());
      CheckLasts(name, wanted[i], given[i], *reader, *writer->second.back());
    }
  }

  // A variable that is not persistable is created empty for each run of its program. The exception is the
  // backups of fetched parameters, which the pserver makes when a trainer fetches.
  void CheckLasts(std::string_view name, const Var* wanted, const Var* given, const Op& reader,
                  const Op& writer) {
    if (given != nullptr && !given->persistable) {
      Error("E-check-not-lasting",
            StrCat("gives ", name, " a value, but does not declare it persistable: ", main_->file,
                   " would find none"),
            &writer);
    } else if (wanted != nullptr && !wanted->persistable && reader.type() != "ref_by_trainer_id") {
      findings_.Error("E-check-not-lasting", *main_,
                      StrCat("reads the initial value of ", name, ", but does not declare it persistable"),
                      &reader);
    }
  }

  void CheckValue(std::string_view name, const Var* wanted, const Var* given, const Op& writer) {
    if (wanted == nullptr || !wanted->type) return;
    // Fluid's local training leaves the element type unset, which is read as bool.
    const bool untyped = facts_.pservers.empty() && wanted->type->dtype == DType::kBool;
    // A table that is only declared has no values, so its size does not matter.
    const bool has_values = writer.type() != "fake_init";
    if (given != nullptr && given->type &&
        ((has_values && !Compatible(given->shape(), wanted->shape())) || given->kind != wanted->kind ||
         (given->type->dtype != wanted->type->dtype && !untyped))) {
      Error("E-check-start-shape",
            StrCat(name, " starts as ", PrintVarType(*given), ", but ", main_->file, " declares ",
                   PrintVarType(*wanted)),
            &writer);
      return;
    }
    const auto dtype = writer.Get<std::int32_t>("dtype");
    if (dtype != nullptr && !untyped && *dtype != static_cast<std::int32_t>(wanted->type->dtype)) {
      Error("E-check-start-shape",
            StrCat(name, " starts with element type ", *dtype, ", but ", main_->file, " declares ",
                   PrintVarType(*wanted)),
            &writer);
    }
    if (has_values) CheckFilledShape(name, *wanted, given, writer);
  }

  // A slice may be initialized with the shape of its whole, from which its rows are taken.
  void CheckFilledShape(std::string_view name, const Var& wanted, const Var* given, const Op& writer) {
    const Attr* attr = writer.FindAttr("shape");
    const auto dims = attr == nullptr ? std::nullopt : AttrAs<std::vector<std::int64_t>>(*attr);
    if (!dims) return;
    const Shape filled(*dims);
    if (filled.Count() == wanted.shape().Count() || !wanted.shape().IsKnown()) return;
    if (given != nullptr && given->facts.slice && given->facts.slice->whole_shape.Count() == filled.Count())
      return;
    Error("E-check-start-shape",
          StrCat(name, " is filled with shape ", filled, ", but ", main_->file, " declares ",
                 PrintVarType(wanted)),
          &writer);
  }

  // A pserver's startup program writes each of the pserver's variables once, and besides only temporaries
  // from which it computes initial values.
  void CheckOnlyUsed() {
    ViewSet read;
    for (const OpEntry& entry : startup_->program.main().ops()) {
      for (const Slot& slot : entry.op->inputs()) read.insert(slot.args.begin(), slot.args.end());
    }
    for (const auto& writer : writers_) {
      const auto& name = writer.first;
      const auto& ops = writer.second;
      const Var* var = main_->program.main().FindVar(name);
      if (var == nullptr) {
        const Var* temporary = startup_->program.main().FindVar(name);
        if (temporary != nullptr && !temporary->persistable && IsRead(*ops.front(), read)) continue;
        Error("E-check-start-unused",
              StrCat("gives a value to ", name, ", which ", main_->file, " does not have"), ops.front());
      } else if (const auto again = std::find_if(
                     ops.begin() + 1, ops.end(),
                     [&](const Op* op) { return IsPlain(op) && !RepeatsConstant(*op, *ops.front()); });
                 again != ops.end()) {
        Error("E-check-start-twice", StrCat("gives ", name, " ", ops.size(), " initial values"), *again);
      }
    }
  }

  // An op that computes a variable's initial value from others may follow the variable's own initializer.
  static bool IsPlain(const Op* op) { return op->InputNames().empty(); }
  // Programs that share a startup program each add their initializer of the counter of their schedules, which
  // has one element.
  static bool RepeatsConstant(const Op& op, const Op& first) {
    return op.type() == "fill_constant" && op.SameAs(first) &&
           op.GetOr<std::vector<std::int64_t>>("shape", {}) == std::vector<std::int64_t>{1};
  }

  static bool IsRead(const Op& op, const ViewSet& read) {
    const std::vector<std::string> outputs = op.OutputNames();
    return std::any_of(outputs.begin(), outputs.end(),
                       [&](const std::string& name) { return read.contains(name); });
  }

  // Variables that are fetched in each step are also fetched at startup, to the same variable and in the same
  // order. Otherwise the first step runs on the trainer's own values.
  void CheckFetchedAtStart(const TrainerFacts& trainer) {
    ViewMap<const Transfer*> starts;
    for (const Transfer& start : trainer.startup_recvs) starts.emplace(start.whole, &start);
    for (const Transfer& recv : trainer.recvs) {
      const auto it = starts.find(recv.whole);
      if (it == starts.end()) {
        Error("E-check-start-recv",
              StrCat("does not receive ", recv.whole,
                     "; the first step would not start from the pserver's value"),
              recv.op);
        continue;
      }
      const auto same = [](const Piece& a, const Piece& b) {
        return a.remote == b.remote && a.pserver == b.pserver;
      };
      const auto& pieces = it->second->pieces;
      if (std::equal(recv.pieces.begin(), recv.pieces.end(), pieces.begin(), pieces.end(), same)) continue;
      Error("E-check-start-recv",
            StrCat("receives ", recv.whole, " from other pieces or pservers than ", main_->file,
                   " does each step"),
            it->second->op);
    }
  }

  // Received pieces must be joined, because they are not kept.
  void CheckJoined(const TrainerFacts& trainer) {
    for (const Transfer& recv : trainer.startup_recvs) {
      if (recv.cut_op == nullptr || !recv.whole.empty()) continue;
      Error("E-check-start-recv",
            StrCat(recv.cut_op->type(), " makes nothing of ", recv.pieces.front().local,
                   ", which comes from ", recv.pieces.front().pserver),
            recv.cut_op);
    }
  }

  const RoleFacts& facts_;
  Findings& findings_;
  const RoleProgram* main_ = nullptr;
  const RoleProgram* startup_ = nullptr;
  bool is_fed_ = false;
  ViewMap<std::vector<const Op*>> writers_;
};

}  // namespace

void CheckStartup(const RoleFacts& facts, Findings& findings) { StartupRules(facts, findings).Run(); }

}  // namespace penstock::check
