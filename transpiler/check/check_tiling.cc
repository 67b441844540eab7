// Slices cover their variable once, in order, and a slice's gradient goes where its parameter comes from.
#include <algorithm>

#include "framework/text/printer.h"
#include "transpiler/check/facts.h"

namespace penstock {
namespace {

class TilingRules {
 public:
  TilingRules(const RoleFacts& facts, std::vector<Finding>& findings) : facts_(facts), findings_(findings) {}

  void Run() {
    for (const TrainerFacts& trainer : facts_.trainers) {
      trainer_ = &trainer;
      for (const auto& [whole, pieces] : trainer.split) CheckSplit(whole, pieces);
      for (const auto& [param, sends] : ByParam(trainer.sends)) {
        const auto recvs = ByParam(trainer.recvs);
        const auto it = recvs.find(param);
        if (it == recvs.end()) continue;  // a table, or reported as never received
        CheckPairs(param, sends, it->second);
        CheckJoin(param, it->second);
      }
    }
  }

 private:
  using Messages = std::vector<const Message*>;

  void Error(std::string id, std::string message, const Op* op) {
    findings_.push_back(
        MakeFinding(Severity::kError, std::move(id), *trainer_->file, std::move(message), op));
  }

  static std::map<std::string, Messages> ByParam(const std::vector<Message>& messages) {
    std::map<std::string, Messages> by_param;
    for (const Message& message : messages) {
      if (!message.param.empty()) by_param[message.param].push_back(&message);
    }
    return by_param;
  }

  static std::vector<std::int64_t> Sections(const Op& op) {
    if (const auto* ints = op.Get<std::vector<std::int32_t>>("sections")) return {ints->begin(), ints->end()};
    return op.GetOr<std::vector<std::int64_t>>("height_sections", {});
  }

  std::optional<Shape> ShapeOf(const std::string& name) const {
    const Var* var = trainer_->file->program.FindVar(0, name);
    if (var == nullptr || !var->type) return std::nullopt;
    return var->shape();
  }

  void CheckSplit(const std::string& whole, const TrainerFacts::Pieces& pieces) {
    const std::vector<std::int64_t> sections = Sections(*pieces.op);
    const auto shape = ShapeOf(whole);
    if (!shape || shape->rank() == 0) return;
    if (sections.size() != pieces.names.size()) {
      Error(
          "E-check-sections",
          StrCat(whole, " is split into ", pieces.names.size(), " pieces by ", sections.size(), " sections"),
          pieces.op);
      return;
    }
    std::int64_t rows = 0;
    for (std::size_t i = 0; i < sections.size(); ++i) {
      rows += sections[i];
      const auto piece = ShapeOf(pieces.names[i]);
      if (piece && piece->rank() > 0 && (*piece)[0] != sections[i] && (*piece)[0] != kUnknownDim) {
        Error("E-check-sections",
              StrCat(pieces.names[i], " is declared with ", (*piece)[0], " rows, but its section has ",
                     sections[i]),
              pieces.op);
      }
    }
    if (rows != (*shape)[0] && (*shape)[0] != kUnknownDim) {
      Error("E-check-sections",
            StrCat("the sections of ", whole, " have ", rows, " rows together; it has ", (*shape)[0]),
            pieces.op);
    }
  }

  // The piece that a server updates with what it receives in this message; empty if none.
  std::string UpdatedBy(const Message& sent) const {
    const PserverFacts* pserver = facts_.FindPserver(sent.pserver);
    if (pserver == nullptr) return "";
    for (const UpdateBlock& update : pserver->updates) {
      const auto& inputs = update.merge_inputs;
      const bool merged = std::find(inputs.begin(), inputs.end(), sent.remote) != inputs.end();
      if (merged || update.grad == sent.remote) return update.param;
    }
    return "";
  }

  void CheckPairs(const std::string& param, const Messages& sends, const Messages& recvs) {
    if (sends.size() != recvs.size()) {
      Error("E-check-slices",
            StrCat("sends ", sends.size(), " slices of the gradient of ", param, ", but receives ",
                   recvs.size(), " of it"),
            recvs.front()->op);
      return;
    }
    for (std::size_t i = 0; i < sends.size(); ++i) {
      const std::string updated = UpdatedBy(*sends[i]);
      if (updated.empty()) continue;  // reported as not received or as without update
      if (updated == recvs[i]->remote && sends[i]->pserver == recvs[i]->pserver) continue;
      Error("E-check-slice-order",
            StrCat("slice ", i, " of the gradient of ", param, " (", sends[i]->local, ") updates ", updated,
                   " at ", sends[i]->pserver, ", but slice ", i, " is received as ", recvs[i]->remote,
                   " from ", recvs[i]->pserver),
            recvs[i]->op);
    }
  }

  void CheckJoin(const std::string& param, const Messages& recvs) {
    if (recvs.size() == 1 && recvs.front()->local == param) return;
    const auto joined = trainer_->joined.find(param);
    if (joined == trainer_->joined.end()) {
      Error("E-check-join", StrCat("receives ", recvs.size(), " slices of ", param, ", but never joins them"),
            recvs.front()->op);
      return;
    }
    std::vector<std::string> received;
    for (const Message* recv : recvs) received.push_back(recv->local);
    if (received != joined->second.names) {
      Error("E-check-join",
            StrCat(param, " is joined from ", Join(joined->second.names, ", "), ", but its slices are ",
                   Join(received, ", ")),
            joined->second.op);
      return;
    }
    const auto whole = ShapeOf(param);
    Dim rows = 0;
    for (const std::string& name : received) {
      const auto piece = ShapeOf(name);
      if (!piece || piece->rank() == 0) return;
      rows += (*piece)[0];
      if (whole && !Compatible(piece->From(1), whole->From(1))) {
        Error("E-check-join",
              StrCat("rows of ", name, " are ", piece->From(1), ", rows of ", param, " are ", whole->From(1)),
              joined->second.op);
      }
    }
    if (whole && whole->rank() > 0 && rows != (*whole)[0]) {
      Error("E-check-tiling",
            StrCat("the slices of ", param, " have ", rows, " rows together; it has ", (*whole)[0]),
            joined->second.op);
    }
  }

  const RoleFacts& facts_;
  std::vector<Finding>& findings_;
  const TrainerFacts* trainer_ = nullptr;
};

}  // namespace

void CheckTiling(const RoleFacts& facts, std::vector<Finding>& findings) {
  TilingRules(facts, findings).Run();
}

}  // namespace penstock
