// Groups the lookups of a table into requests for rows, and finds the place of each request. Trainers and
// pservers get the same requests, because both read the user's program.
//
//   LookupRequests requests(context.main.main(), context.plan.conventions());
//   PENSTOCK_ASSIGN_OR_RETURN(const auto found, requests.Of(table));
#pragma once

#include <vector>

#include "framework/base/status.h"
#include "framework/ir/def_use.h"
#include "framework/ir/edit.h"
#include "framework/ir/program.h"
#include "transpiler/plan/analyse.h"
#include "transpiler/plan/conventions.h"
#include "transpiler/plan/plan.h"

namespace penstock::passes {

struct LookupRequest {
  // In program order; of one op type and padding_idx (one_request_per_table: the first one's counts).
  std::vector<OpId> lookups;
  OpId at = OpId::kNone;  // the op next to which the request is inserted
  bool behind = false;    // whether it goes after that op instead of before it
  // Inserts `op` there; several calls insert in the order of the calls.
  void Insert(BlockEdit& block, Op op) const;
};

class LookupRequests {
 public:
  LookupRequests(const Block& main, const plan::Conventions& conventions);

  // Lookups of equal op type and padding_idx share a request if their dependencies allow it. Its place is
  // after all its ids are written and before any of its results is read, on the lookups' side of the table's
  // update: as early as possible, or for a distributed table at its first lookup. With one_request_per_table:
  // one request; kInvalidArgument E-pass-prefetch-order or E-pass-prefetch-rank where Fluid rejects it.
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
  const plan::Conventions& conventions_;
};

// The trainer's variables of a request to one pserver's shard: the requested ids and the returned rows.
// `number` counts the requests of a job.
Var AskedIds(const Block& main, const LookupRequest& request, int number, int pserver,
             const plan::Conventions& conventions);
Var AnsweredRows(const Block& main, const LookupRequest& request, int number, int pserver,
                 const plan::Conventions& conventions);

}  // namespace penstock::passes
