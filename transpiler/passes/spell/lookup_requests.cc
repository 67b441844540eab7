#include "transpiler/passes/spell/lookup_requests.h"

#include <algorithm>
#include <utility>

#include "transpiler/plan/names.h"

namespace penstock::passes {

void LookupRequest::Insert(BlockEdit& block, Op op) const {
  if (behind) {
    block.InsertAfter(at, std::move(op));
  } else {
    block.InsertBefore(at, std::move(op));
  }
}

LookupRequests::LookupRequests(const Block& main, const plan::Conventions& conventions)
    : main_(main), def_use_(main), conventions_(conventions) {}

Result<std::vector<LookupRequest>> LookupRequests::Of(const plan::SparseTable& table) const {
  if (table.lookups.empty()) return std::vector<LookupRequest>();
  return conventions_.one_request_per_table ? AsFluid(table) : ByDependency(table);
}

// The first and last gap between ops at which a lookup may be placed. Gap i is before op i.
struct LookupRequests::Span {
  int first = 0;
  int last = 0;
};

LookupRequests::Span LookupRequests::SpanOf(OpId lookup) const {
  const Op& op = *main_.FindOp(lookup);
  const int position = main_.PositionOf(lookup);
  Span span{.first = 0, .last = static_cast<int>(main_.ops().size())};
  const auto stay_between = [&](const std::vector<OpId>& users) {
    for (const OpId user : users) {
      const int at = main_.PositionOf(user);
      if (at < position) span.first = std::max(span.first, at + 1);
      if (at > position) span.last = std::min(span.last, at);
    }
  };
  stay_between(def_use_.Writers(op.InputName("Ids")));
  stay_between(def_use_.Readers(op.OutputName("Out")));
  stay_between(def_use_.Writers(op.OutputName("Out")));
  stay_between(def_use_.Writers(op.InputName("W")));  // the table's update
  return span;
}

// As in Fluid, requests to slices are placed as soon as the ids are written, requests to shards at the first
// lookup.
void LookupRequests::Place(const plan::SparseTable& table, int first_gap, LookupRequest& request) const {
  const bool at_lookup = table.distributed && first_gap <= main_.PositionOf(request.lookups.front());
  request.behind = !at_lookup && first_gap > 0;
  request.at = at_lookup ? request.lookups.front()
                         : main_.ops()[static_cast<std::size_t>(request.behind ? first_gap - 1 : 0)].id;
}

std::vector<LookupRequest> LookupRequests::ByDependency(const plan::SparseTable& table) const {
  std::vector<LookupRequest> requests;
  std::vector<Span> spans;
  const auto like = [&](const LookupRequest& request, const Op& op) {
    const Op& first = *main_.FindOp(request.lookups.front());
    return first.type() == op.type() &&
           first.GetOr<std::int64_t>("padding_idx", -1) == op.GetOr<std::int64_t>("padding_idx", -1);
  };
  for (const OpId id : table.lookups) {
    const Span span = SpanOf(id);
    std::size_t i = 0;
    while (i < requests.size() &&
           (std::max(spans[i].first, span.first) > std::min(spans[i].last, span.last) ||
            !like(requests[i], *main_.FindOp(id)))) {
      ++i;
    }
    if (i == requests.size()) {
      requests.emplace_back();
      spans.push_back(span);
    }
    requests[i].lookups.push_back(id);
    spans[i] = {.first = std::max(spans[i].first, span.first), .last = std::min(spans[i].last, span.last)};
  }
  for (std::size_t i = 0; i < requests.size(); ++i) Place(table, spans[i].first, requests[i]);
  return requests;
}

Status LookupRequests::RequireFluidsRank(const plan::SparseTable& table) const {
  for (const OpId id : table.lookups) {
    const std::string& ids = main_.FindOp(id)->InputName("Ids");
    const Var* var = main_.FindVar(ids);
    if (var == nullptr || var->shape().rank() == 2) continue;
    return InvalidArgument("E-pass-prefetch-rank", "prefetch_tables: ids ", ids, " of table ", table.param,
                           " must be of rank 2, not ", var->shape().rank());
  }
  return OkStatus();
}

// One request for all lookups, after the last writer of any ids. Like Fluid, only rejects it if the last
// reader of a result comes earlier.
Result<std::vector<LookupRequest>> LookupRequests::AsFluid(const plan::SparseTable& table) const {
  LookupRequest request{.lookups = table.lookups, .at = table.lookups.front(), .behind = false};
  if (table.distributed) return std::vector<LookupRequest>{std::move(request)};
  PENSTOCK_RETURN_IF_ERROR(RequireFluidsRank(table));
  int produced_at = -1;
  int read_at = static_cast<int>(main_.ops().size());
  for (const OpId id : table.lookups) {
    const Op& op = *main_.FindOp(id);
    const std::vector<OpId>& producers = def_use_.Writers(op.InputName("Ids"));
    const std::vector<OpId>& readers = def_use_.Readers(op.OutputName("Out"));
    if (!producers.empty()) produced_at = std::max(produced_at, main_.PositionOf(producers.back()));
    read_at = std::min(read_at, readers.empty() ? -1 : main_.PositionOf(readers.back()));
  }
  if (produced_at >= read_at) {
    return InvalidArgument("E-pass-prefetch-order", "prefetch_tables: the lookups of ", table.param,
                           " cannot be done at once: ids are made after a result is read");
  }
  Place(table, produced_at + 1, request);
  return std::vector<LookupRequest>{std::move(request)};
}

namespace {

// Fluid declares the variables of a request like those of the first lookup, whose ids have rank 2.
Var LikeFirst(const Var* first, std::string name, Dim width, const plan::Conventions& conventions) {
  const Shape& shape = first->shape();
  const bool alike = conventions.one_request_per_table || shape.rank() == 2;
  return TensorVar(std::move(name), first->type->dtype, alike ? shape : Shape({kUnknownDim, width}));
}

}  // namespace

Var AskedIds(const Block& main, const LookupRequest& request, int number, int pserver,
             const plan::Conventions& conventions) {
  const Var* first = main.FindVar(main.FindOp(request.lookups.front())->InputName("Ids"));
  return LikeFirst(first, plan::AskedIdsName(number, pserver), 1, conventions);
}

Var AnsweredRows(const Block& main, const LookupRequest& request, int number, int pserver,
                 const plan::Conventions& conventions) {
  const Var* first = main.FindVar(main.FindOp(request.lookups.front())->OutputName("Out"));
  const Shape& shape = first->shape();
  const Dim width = shape.rank() == 0 ? kUnknownDim : shape[shape.rank() - 1];
  return LikeFirst(first, plan::AnsweredRowsName(number, pserver), width, conventions);
}

}  // namespace penstock::passes
