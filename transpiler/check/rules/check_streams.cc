// Ranks exchange a value in place, after it is computed and before any op reads it, because operations
// between ranks run on their own streams.
#include "transpiler/check/facts/rank_facts.h"
#include "transpiler/check/facts/rank_ops.h"

namespace penstock::check {
namespace {

class StreamRules {
 public:
  explicit StreamRules(Findings& findings) : findings_(findings) {}

  void Run(const RankFacts& rank) {
    CheckInPlace(rank);
    CheckStreams(rank);
  }

 private:
  // Operations between ranks, and waits for them, write their input in place. Those on a user's own variables
  // need not.
  void CheckInPlace(const RankFacts& rank) {
    for (const RoleProgram* file : {rank.trainer->startup, rank.trainer->file}) {
      if (file == nullptr) continue;
      for (int block = 0; block < file->program.block_count(); ++block) {
        for (const OpEntry& entry : file->program.block(block).ops()) {
          const Op& op = *entry.op;
          const bool in_place = AddsUp(op) || GivesToOthers(op) || AwaitsStream(op);
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

  void CheckStreams(const RankFacts& rank) {
    std::map<int, RankOps> blocks;
    for (const Collective& one : rank.main) {
      const Block& block = rank.trainer->file->program.block(one.block);
      const RankOps& ops = blocks.try_emplace(one.block, block).first->second;
      CheckReadBefore(rank, one, ops);
      if (!one.op->GetOr<bool>("use_calc_stream", false)) CheckWaits(rank, one, ops);
    }
  }

  // An operation on its own stream must start after its input is computed, and end before its result is read.
  // A wait covers the whole stream.
  void CheckWaits(const RankFacts& rank, const Collective& one, const RankOps& ops) {
    const std::string& name = one.op->InputName("X");
    const int ring = RingOf(*one.op);
    int computed = -1;
    const Op* reader = nullptr;
    for (const RankOps::Use& use : ops.UsesOf(name)) {
      if (use.at < one.position && use.writes && !AwaitsComputation(*use.op)) computed = use.at;
      if (use.at <= one.position || !use.reads || AwaitsRing(*use.op)) continue;
      if (use.at < ops.RingAwaitedAfter(ring, one.position)) reader = use.op;
      break;
    }
    const RoleProgram& file = *rank.trainer->file;
    if (ops.AwaitedBefore(one.position) <= computed) {
      findings_.Error("E-check-streams", file,
                      StrCat("adds up ", name, " without waiting until it is computed"), one.op);
    } else if (reader != nullptr) {
      findings_.Error("E-check-streams", file,
                      StrCat(reader->type(), " reads ", name, " before ring ", ring, " is waited for"),
                      reader);
    }
  }

  // Readers of a reduced variable read the sum, not the rank's own part.
  void CheckReadBefore(const RankFacts& rank, const Collective& one, const RankOps& ops) {
    const std::string& name = one.op->InputName("X");
    if (!rank.exchanged.contains(name)) return;
    const Op* reader = nullptr;
    for (const RankOps::Use& use : ops.UsesOf(name)) {
      if (use.at >= one.position) break;
      if (AwaitsStream(*use.op)) continue;
      reader = use.writes ? nullptr : use.op;
    }
    if (reader == nullptr) return;
    findings_.Error("E-check-reduced", *rank.trainer->file,
                    StrCat(reader->type(), " reads ", name, " before it is added up over the ranks"), reader);
  }

  Findings& findings_;
};

}  // namespace

void CheckStreams(const RoleFacts& facts, Findings& findings) {
  if (!facts.ranks()) return;
  for (const RankFacts& rank : ReadRanks(facts)) StreamRules(findings).Run(rank);
}

}  // namespace penstock::check
