// What ranks exchange is exchanged in place, after it is computed and before anybody reads it: operations
// have streams of their own.
#include <algorithm>

#include "transpiler/check/rank_facts.h"

namespace penstock {
namespace {

class StreamRules {
 public:
  explicit StreamRules(Findings& findings) : findings_(findings) {}

  void Run(const RankFacts& rank) {
    CheckInPlace(rank);
    CheckStreams(rank);
  }

 private:
  // Operations of all ranks, and what waits for them, give back what they are given. A user's own need not.
  void CheckInPlace(const RankFacts& rank) {
    for (const RoleProgram* file : {rank.trainer->startup, rank.trainer->file}) {
      if (file == nullptr) continue;
      for (int block = 0; block < file->program.block_count(); ++block) {
        for (const OpEntry& entry : file->program.block(block).ops()) {
          const Op& op = *entry.op;
          const bool in_place = op.type() == "c_allreduce_sum" || op.type() == "c_broadcast" ||
                                op.type() == "c_sync_calc_stream" || op.type() == "c_sync_comm_stream";
          const bool own =
              rank.exchanged.contains(op.InputName("X")) || rank.exchanged.contains(op.OutputName("Out"));
          if (!in_place || !own || op.Input("X") == op.Output("Out")) continue;
          findings_.Error("E-check-in-place", *file,
                          StrCat(op.type(), " takes ", Join(op.Input("X"), ", "), ", but gives ",
                                 op.Output("Out").empty() ? "nothing" : Join(op.Output("Out"), ", ")),
                          &op);
        }
      }
    }
  }

  // An operation on a stream of its own begins when its input is there, and is over before its result is
  // read.
  void CheckStreams(const RankFacts& rank) {
    for (const Collective& one : rank.main) {
      const auto& entries = rank.trainer->file->program.block(one.block).ops();
      CheckReadAfter(rank, one);
      if (one.op->GetOr<bool>("use_calc_stream", false)) continue;
      const std::string& name = one.op->InputName("X");
      const auto ring = one.op->GetOr<std::int32_t>("ring_id", 0);
      const auto at = static_cast<std::size_t>(one.position);
      bool begun = false;  // a stream is waited for as a whole
      for (std::size_t i = 0; i < at; ++i) {
        const auto outputs = entries[i].op->OutputNames();
        if (entries[i].op->type() == "c_sync_calc_stream") {
          begun = true;
        } else if (std::find(outputs.begin(), outputs.end(), name) != outputs.end()) {
          begun = false;
        }
      }
      bool over = false;
      const Op* reader = nullptr;
      for (std::size_t i = at + 1; i < entries.size() && reader == nullptr && !over; ++i) {
        const Op& op = *entries[i].op;
        const bool waits = op.type() == "c_sync_comm_stream";
        over = waits && op.GetOr<std::int32_t>("ring_id", 0) == ring;
        const auto names = op.InputNames();
        if (!waits && std::find(names.begin(), names.end(), name) != names.end()) reader = &op;
      }
      if (begun && (over || reader == nullptr)) continue;
      findings_.Error("E-check-streams", *rank.trainer->file,
                      begun ? StrCat(reader->type(), " reads ", name, " before ring ", ring, " is waited for")
                            : StrCat("adds up ", name, " without waiting until it is computed"),
                      begun ? reader : one.op);
    }
  }

  // Who reads what is to be added up reads the sum, not the rank's own part.
  void CheckReadAfter(const RankFacts& rank, const Collective& one) {
    const auto& entries = rank.trainer->file->program.block(one.block).ops();
    const std::string& name = one.op->InputName("X");
    if (!rank.exchanged.contains(name)) return;
    for (int at = one.position - 1; at >= 0; --at) {
      const Op& op = *entries[static_cast<std::size_t>(at)].op;
      const auto outputs = op.OutputNames(), inputs = op.InputNames();
      const bool waits = op.type() == "c_sync_calc_stream" || op.type() == "c_sync_comm_stream";
      if (waits) continue;
      if (std::find(outputs.begin(), outputs.end(), name) != outputs.end()) return;
      if (std::find(inputs.begin(), inputs.end(), name) == inputs.end()) continue;
      findings_.Error("E-check-reduced", *rank.trainer->file,
                      StrCat(op.type(), " reads ", name, " before it is added up over the ranks"), &op);
      return;
    }
  }

  Findings& findings_;
};

}  // namespace

void CheckStreams(const RoleFacts& facts, Findings& findings) {
  if (!facts.pservers.empty()) return;
  for (const RankFacts& rank : ReadRanks(facts)) StreamRules(findings).Run(rank);
}

}  // namespace penstock
