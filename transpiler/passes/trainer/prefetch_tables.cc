// Replaces the lookups of a table that trainers do not hold by requests for the rows of the batch.
//
//   plan    t: rows [0, 1000) on pserver 1, rows [1000, 2000) on pserver 0; prefetched
//   before  a = lookup_table(W=t, Ids=i) ; b = lookup_table(W=t, Ids=j)
//   after   (Outputs=[a, b]) = distributed_lookup_table(W=t, Ids=[i, j]) {endpoints=[second, first]}
//
//   plan    table t, rows by id
//   after   [ids0, ids1] = split_ids(Ids=[i, j]) ; [rows0, rows1] = prefetch(X=[ids0, ids1]) {epmap=[both]}
//           [a, b] = merge_ids(Ids=[i, j], Rows=[ids0, ids1], X=[rows0, rows1])
//
// lookup_requests.h defines which lookups a request replaces and where it is placed. A lookup in a block that
// an op runs is replaced where it is, by a request of its own. An op that selects rows itself stays, and gets
// the places of the table's slices.
#include "framework/ir/edit.h"
#include "transpiler/passes/passes.h"
#include "transpiler/passes/spell/comm_ops.h"
#include "transpiler/passes/spell/lookup_requests.h"
#include "transpiler/plan/names.h"

namespace penstock::passes {
namespace {

constexpr char kPrefetchTables[] = "prefetch_tables";

template <typename Entry>
const Entry* FindPlanned(const std::vector<Entry>& all, std::string Entry::*name, const std::string& wanted) {
  for (const Entry& one : all) {
    if (one.*name == wanted) return &one;
  }
  return nullptr;
}

class Prefetcher {
 public:
  Prefetcher(ProgramEdit& edit, const PassContext& context)
      : edit_(edit),
        main_(edit.main()),
        context_(context),
        users_(context.main.main()),
        requests_(context.main.main(), context.plan.conventions()) {}

  Status AskSlices(const plan::SparseTable& table) {
    const plan::ParamPlacement* placement =
        FindPlanned(context_.plan.params, &plan::ParamPlacement::param, table.param);
    if (placement == nullptr) return PassError(kPrefetchTables, table.param, " is not planned");
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<LookupRequest> requests, requests_.Of(table));
    for (const LookupRequest& request : requests) {
      LookupSpec spec = SlicesOf(*placement);
      CollectLookups(request, spec.ids, spec.outputs);
      const Op& first = *users_.FindOp(request.lookups.front());
      spec.padding_idx = first.GetOr<std::int64_t>("padding_idx", -1);
      spec.lookup_type = first.type();
      request.Insert(main_, Signed(MakeRemoteLookup(spec), first));
    }
    for (const OpId id : table.samplers) {
      main_.Replace(id, WithSlices(*main_.FindOp(id), SlicesOf(*placement)).SetMadeBy(kPrefetchTables));
    }
    for (const plan::BlockOp& inner : table.inner) AskInBlock(inner, SlicesOf(*placement));
    return RemoveLookups(table);
  }

  Status AskShards(const plan::SparseTable& table) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::vector<LookupRequest> requests, requests_.Of(table));
    for (const LookupRequest& request : requests) PENSTOCK_RETURN_IF_ERROR(AskShards(request));
    return RemoveLookups(table);
  }

 private:
  // A lookup of a block becomes a request at its place: its ids may be others each time the block runs.
  void AskInBlock(const plan::BlockOp& inner, LookupSpec spec) {
    BlockEdit& block = edit_.block(inner.block);
    const Op& op = *context_.main.block(inner.block).FindOp(inner.op);
    if (op.InputName("W").empty()) {
      block.Replace(inner.op, WithSlices(op, spec).SetMadeBy(kPrefetchTables));
      return;
    }
    spec.ids = {op.InputName("Ids")};
    spec.outputs = {op.OutputName("Out")};
    spec.padding_idx = op.GetOr<std::int64_t>("padding_idx", -1);
    spec.lookup_type = op.type();
    block.Replace(inner.op, Signed(MakeRemoteLookup(spec), op));
  }

  Status AskShards(const LookupRequest& request) {
    const plan::Conventions& conventions = context_.plan.conventions();
    const int number = next_request_++;
    ShardRequestSpec spec;
    CollectLookups(request, spec.ids, spec.outputs);
    spec.addresses = context_.plan.pservers;
    spec.trainer_id = SenderId(context_);
    const Op& first = *users_.FindOp(request.lookups.front());
    spec.lookup_type = first.type();
    for (int p = 0; p < static_cast<int>(spec.addresses.size()); ++p) {
      PENSTOCK_RETURN_IF_ERROR(Declare(AskedIds(users_, request, number, p, conventions), spec.asked));
      PENSTOCK_RETURN_IF_ERROR(Declare(AnsweredRows(users_, request, number, p, conventions), spec.answered));
    }
    request.Insert(main_, Signed(MakeSplitIds(spec.ids, spec.asked, OpRole::kForward), first));
    request.Insert(main_, Signed(MakePrefetch(spec), first));
    request.Insert(main_, Signed(MakeMergeIds(spec), first));
    return OkStatus();
  }

  Status Declare(Var var, NameList& names) {
    if (main_.FindVar(var.name) != nullptr) {
      return InvalidArgument("E-plan-name-clash", "plan: a distributed table needs the name ", var.name,
                             ", which a variable of the program has")
          .With("note: rename that variable");
    }
    names.push_back(var.name);
    main_.SetVar(std::move(var));
    return OkStatus();
  }

  LookupSpec SlicesOf(const plan::ParamPlacement& table) const {
    LookupSpec spec;
    spec.table = table.param;
    spec.addresses = context_.plan.AddressesOf(table);
    spec.trainer_id = context_.self.index;
    for (std::size_t i = 0; i < table.slices.size(); ++i) {
      spec.pieces.push_back(plan::ParamPieceName(table, static_cast<int>(i)));
      spec.rows.push_back(table.slices[i].rows());
    }
    return spec;
  }

  void CollectLookups(const LookupRequest& request, NameList& ids, NameList& outputs) const {
    for (const OpId id : request.lookups) {
      ids.push_back(users_.FindOp(id)->InputName("Ids"));
      outputs.push_back(users_.FindOp(id)->OutputName("Out"));
    }
  }

  static Op Signed(Op op, const Op& lookup) {
    return std::move(op.SetMadeBy(kPrefetchTables).SetLocation(lookup.location()));
  }

  Status RemoveLookups(const plan::SparseTable& table) {
    for (const OpId id : table.lookups) {
      if (main_.FindOp(id) == nullptr)
        return PassError(kPrefetchTables, "a lookup of ", table.param, " is gone");
      main_.Remove(id);
    }
    return OkStatus();
  }

  ProgramEdit& edit_;
  BlockEdit& main_;
  const PassContext& context_;
  const Block& users_;
  LookupRequests requests_;
  int next_request_ = 0;
};

}  // namespace

Result<Program> PrefetchTables(const Program& in, const PassContext& context) {
  const std::vector<plan::SparseTable>& tables = context.analysis.tables;
  if (tables.empty()) return in;
  ProgramEdit edit(in);
  Prefetcher prefetcher(edit, context);
  // Fluid inserts each new op before those that it inserted earlier at the same place.
  for (auto table = tables.rbegin(); table != tables.rend(); ++table) {
    if (!table->distributed) PENSTOCK_RETURN_IF_ERROR(prefetcher.AskSlices(*table));
  }
  for (const plan::SparseTable& table : tables) {
    if (table.distributed) PENSTOCK_RETURN_IF_ERROR(prefetcher.AskShards(table));
  }
  return edit.Apply();
}

}  // namespace penstock::passes
