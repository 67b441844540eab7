// Evaluates the whole set on expressions: what each trainer computes and sends, what each pserver computes
// from it, and what each trainer computes from the values that it then receives. Sends and recvs are replaced
// by the values that they carry.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transpiler/check/facts/facts.h"
#include "transpiler/check/meaning/evaluate.h"

namespace penstock::check {

// One slice of a parameter after a step, and the optimizer's state that belongs to it.
struct UpdatedSlice {
  std::string_view param;  // the trainers' name of the whole
  std::size_t index = 0;   // of the slice
  const PserverFacts* pserver = nullptr;
  const UpdateBlock* update = nullptr;
  ExprId value = ExprId::kNone;
  ExprId gradient = ExprId::kNone;                    // as trainers send it
  ExprId rate = ExprId::kNone;                        // of the optimizer
  std::vector<std::pair<std::string, ExprId>> state;  // by the name of the whole parameter's state
  std::map<std::string, ExprId> kept;  // persistable variables that other ops write, by their names there
};

// The copies that a startup program makes: from each variable, the variables it is copied to.
using Copies = ViewMap<std::vector<std::string_view>>;

struct Composition {
  Composition(const RoleFacts& facts, const OpRegistry& ops);

  const RoleFacts& facts;
  const OpRegistry& ops;
  ExprTable table;
  std::set<std::string> counters;                      // advanced by messages instead of by an op
  std::vector<std::unique_ptr<Evaluation>> trainers;   // main programs, in the order of facts.trainers
  std::vector<std::unique_ptr<Evaluation>> lr_blocks;  // in the order of facts.pservers
  ViewMap<std::vector<UpdatedSlice>> slices;           // by parameter

 private:
  using StateName = std::pair<std::string, std::string>;  // name on the pserver; name for the whole parameter
  // An update whose gradient has arrived.
  struct Run {
    UpdatedSlice slice;
    std::unique_ptr<Evaluation> values;
  };

  void RunToSends();
  void RunLrBlocks();
  void RunFromReceives();
  void RunFromReceives(const TrainerFacts& trainer, Evaluation& run) const;
  bool Receive(const Transfer& recv, const Op& op, Evaluation& run) const;
  ExprId WholeOf(std::string_view param) const;
  void Update(const Transfer& send, std::size_t index);
  std::vector<StateName> StateOf(const UpdatedSlice& slice, const std::string& rate) const;
  Run Begin(const Transfer& send, std::size_t index, const PserverFacts& pserver, const UpdateBlock& update);
  void SetSlices(const UpdatedSlice& slice, Evaluation& block);
  void RunShared();
  void End(Run run);
  void SetArrivals(const UpdateBlock& update, const PserverFacts& pserver, ExprId gradient,
                   Evaluation& block);
  PlaceMap<ExprId> arrivals_;
  std::vector<Copies> copies_;                       // in the order of facts.pservers
  std::vector<std::unique_ptr<Evaluation>> shared_;  // likewise; null where nothing is shared
  std::vector<Run> waiting_;                         // updates that wait for shared values
};

// The results that a program computes for its user: the losses, and the outputs of forward ops that no op of
// the program reads.
std::vector<std::string_view> ResultsOf(const Program& program);

// The rules of meaning.
void CheckAlike(Composition& set, Findings& findings);
void CheckSource(Composition& set, const SourcePrograms& source, Findings& findings);
void CheckStartValues(Composition& set, const SourcePrograms* source, Findings& findings);

}  // namespace penstock::check
