// Which lookups of a table one request for rows can stand for, and where it stands. Trainers and pservers
// find the same ones: both look at the user's program.
//
//   LookupRequests requests(context.main.main(), context.plan.dialect);
//   PENSTOCK_ASSIGN_OR_RETURN(const auto found, requests.Of(table));
#pragma once

#include <vector>

#include "framework/base/status.h"
#include "framework/ir/def_use.h"
#include "framework/ir/edit.h"
#include "framework/ir/program.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/config.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

struct LookupRequest {
  // In program order; of one op type and padding_idx (compat: the first one's counts).
  std::vector<OpId> lookups;
  OpId at = OpId::kNone;  // the op next to which it stands
  bool behind = false;    // it, not in front of it
  // In the order of the calls.
  void Insert(BlockEdit& block, Op op) const;
};

class LookupRequests {
 public:
  LookupRequests(const Block& main, plan::Dialect dialect);

  // Default dialect: as few requests as there are op types, values of padding_idx and levels of dependency. A
  // request stands where all its ids exist and none of its results is read yet: as early as it can, or for a
  // distributed table at its first lookup. Compat: one request; kInvalidArgument E-pass-prefetch-order,
  // E-pass-prefetch-rank where Fluid refuses it.
  Result<std::vector<LookupRequest>> Of(const plan::SparseTable& table) const;

 private:
  struct Span;
  struct Level;
  Span SpanOf(OpId lookup) const;
  void Place(const plan::SparseTable& table, int first_gap, LookupRequest& request) const;
  std::vector<LookupRequest> ByDependency(const plan::SparseTable& table) const;
  Result<std::vector<LookupRequest>> AsFluid(const plan::SparseTable& table) const;
  Status RequireFluidsRank(const plan::SparseTable& table) const;

  const Block& main_;
  DefUse def_use_;
  plan::Dialect dialect_;
};

// What a request to shards passes through: the ids one pserver is asked for and the rows it answers with, as
// the trainer declares them. `number` counts the requests of a job.
Var AskedIds(const Block& main, const LookupRequest& request, int number, int pserver, plan::Dialect dialect);
Var AnsweredRows(const Block& main, const LookupRequest& request, int number, int pserver,
                 plan::Dialect dialect);

}  // namespace penstock::passes
