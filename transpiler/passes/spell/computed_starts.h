// Initial values that the user's startup program computes from others, on a pserver. Their inputs may be on
// other pservers; then this one computes the inputs too, on temporaries, from the user's own initializers.
//
//   startup          v = uniform_random() {seed=3} ; t = square(X=v) ; g = assign(X=t)
//   g here, v not    v = uniform_random() {seed=3} ; t = square(X=v) ; g = assign(X=t)     v and t: temporary
//   g.block0 here    the same, all on temporaries; g.block0 = slice(Input=g) {starts=[0], ends=[2]}
//   v.block0 too     t = square(X=v.block0) ; g.block0 = assign(X=t)                       rows suffice
//
// Ops keep the user's order, so that each reads the same version of a variable as in the user's program.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "framework/base/status.h"
#include "framework/ir/program.h"
#include "transpiler/passes/context.h"
#include "transpiler/passes/spell/server_copy.h"

namespace penstock::passes {

class ComputedStarts {
 public:
  // `block` declares the variables that the pserver holds; temporaries and ops are added to it. `taken` has
  // further names that temporaries must not get. All arguments must outlive the object.
  ComputedStarts(const PassContext& context, const ServerNames& names, const Block& taken, Block& block)
      : context_(context), names_(names), taken_(taken), block_(block) {}

  // Notes the ops that the user's startup op at `position`, which has inputs, needs to initialize `made`.
  // Call it for all such ops before the first Append.
  //
  // kUnimplemented E-pass-initial-value: an input has no initial value, or depends on an op that is not
  // known, has effects, runs blocks, or draws random numbers without a seed, which would differ between
  // pservers.
  Status Need(int position, const Var& made);

  std::set<int> Positions() const;  // of the noted ops, in the user's startup program

  // Appends the noted ops of one position. Call it in the order of positions.
  void AppendNoted(int position);
  // Appends `starter`, the copy of the user's op at `position` that initializes `made`, after AppendNoted.
  void AppendStarter(int position, Op starter, const Word& slot, const Var& made);

 private:
  using Rows = std::tuple<Dim, Dim>;  // [begin, end)

  const Op& OpAt(int position) const;
  std::set<int> WritersBefore(const std::string& name, int position) const;
  Status NeedWhole(const std::string& name, int before, const Op& reader);
  Status NeedInputs(int position, const Op& reader);
  Status NeedInputsFor(int position, const InitialSlice& rows, const Op& reader);
  bool HasRows(const std::string& name, int before, const InitialSlice& rows) const;
  bool WorksOnRows(int position, const InitialSlice& rows) const;
  bool IsOfWhole(const std::string& name, const InitialSlice& rows) const;
  Status RequireComputable(int position, const std::string& name, const Op& reader) const;
  bool IsHeldWhole(const std::string& name) const;
  const std::string* HeldRows(const std::string& name, const InitialSlice& rows) const;
  const std::string& WholeName(const std::string& name);
  std::string NameFor(const std::string& name, const InitialSlice* rows);
  std::string NewName(const std::string& wanted) const;
  void Declare(const std::string& temporary, const std::string& users, const InitialSlice* rows,
               const Op& maker);
  void SetInputs(Op& op, const InitialSlice* rows);
  void SetOutputs(Op& op, const InitialSlice* rows);
  void AppendCopy(int position, const InitialSlice* rows);

  const PassContext& context_;
  const ServerNames& names_;
  const Block& taken_;
  Block& block_;
  std::set<int> whole_;                                  // ops that run on whole variables
  std::map<int, std::map<Rows, InitialSlice>> by_rows_;  // ops that run on rows of variables
  std::map<std::string, std::string> whole_names_;       // of temporaries, by the user's name
  std::map<std::pair<std::string, Rows>, std::string> row_names_;
};

}  // namespace penstock::passes
