#include "transpiler/plan/names.h"

namespace penstock::plan {
namespace {

std::string WithSlice(const std::string& name, const ParamPlacement& param, int slice) {
  return param.sliced() ? StrCat(name, param.mark, ".block", slice) : name;
}

}  // namespace

std::string ParamPieceName(const ParamPlacement& param, int slice) {
  return WithSlice(param.param, param, slice);
}
std::string MergedGradName(const ParamPlacement& param, int slice) {
  return WithSlice(param.grad, param, slice);
}

std::string ReceivedGradName(const ParamPlacement& param, int slice, int trainer) {
  return param.sliced() ? StrCat(MergedGradName(param, slice), ".trainer_", trainer)
                        : StrCat(param.grad, param.mark, ".trainer_", trainer);
}

std::string SentGradName(const PlacementPlan& plan, const ParamPlacement& param, int slice, int trainer) {
  const bool plain = !EndsStepsByOps(plan.mode) || (plan.dialect == Dialect::kFluid18 && plan.trainers == 1);
  return plain ? MergedGradName(param, slice) : ReceivedGradName(param, slice, trainer);
}

std::string PushedGradName(const PlacementPlan& plan, const ParamPlacement& param, int slice, int trainer) {
  return MergesGradients(plan.mode) ? ReceivedGradName(param, slice, trainer) : MergedGradName(param, slice);
}

std::string SnapshotName(std::string_view param) { return StrCat(param, "@SNAPSHOT"); }

std::string RingIdName(int ring) { return StrCat("nccl_id_", ring); }

std::vector<std::string> NcclIdNames(const RankPlan& ranks) {
  std::vector<std::string> names = {"NCCLID"};
  for (int ring = 1; ring < ranks.rings; ++ring) names.push_back(StrCat("NCCLID_", ring));
  for (int ring = 0; ring < ranks.rings && ranks.node_ranks > 0; ++ring) {
    names.push_back(StrCat("Hierarchical_inter_NCCLID_", ring));
    names.push_back(StrCat("Hierarchical_exter_NCCLID_", ring));
  }
  return names;
}

std::string OwnName(const ParamPlacement& param, int slice, const std::string& name) {
  return WithSlice(name, param, slice);
}

std::string DeltaName(const ParamPlacement& param) { return StrCat(param.param, param.mark, ".delta"); }

std::string PieceDeltaName(const ParamPlacement& param, int slice) {
  return param.sliced() ? StrCat(ParamPieceName(param, slice), ".delta") : DeltaName(param);
}

namespace {

std::vector<std::string> DeltaNames(const ParamPlacement& param) {
  std::vector<std::string> names = {DeltaName(param)};
  for (int slice = 0; slice < static_cast<int>(param.slices.size()) && param.sliced(); ++slice) {
    names.push_back(ParamPieceName(param, slice));
    names.push_back(PieceDeltaName(param, slice));
  }
  return names;
}

}  // namespace

std::vector<std::string> PieceNames(const PlacementPlan& plan, const ParamPlacement& param,
                                    const std::set<std::string>& own) {
  if (plan.mode == Mode::kGeo) return DeltaNames(param);
  std::vector<std::string> names;
  for (int slice = 0; slice < static_cast<int>(param.slices.size()); ++slice) {
    for (int trainer = 0; trainer < plan.trainers; ++trainer) {
      names.push_back(ReceivedGradName(param, slice, trainer));
    }
    if (!param.sliced()) continue;
    names.push_back(ParamPieceName(param, slice));
    names.push_back(MergedGradName(param, slice));
    for (const std::string& name : own) names.push_back(OwnName(param, slice, name));
  }
  return names;
}

std::string StepCounterName(const std::string& counter, int trainer) {
  return StrCat(counter, ".trainer_", trainer);
}

std::string BackupName(const std::string& piece, int trainer) {
  return StrCat(piece, ".trainer_", trainer, "_bak");
}

namespace {

// Whether pservers merge the gradients of all trainers before an update.
bool Merges(const PlacementPlan& plan) {
  return EndsStepsByOps(plan.mode) || (plan.mode == Mode::kNotAsync && plan.dialect == Dialect::kDefault);
}

// Fluid has only one request per job, so request 0 gets Fluid's name.
std::string RequestName(std::string_view what, int number, int pserver) {
  return number == 0 ? StrCat(what, pserver) : StrCat(what, pserver, ".", number);
}

}  // namespace

std::string SentShardGradName(const PlacementPlan& plan, const TablePlacement& table, int pserver,
                              int trainer) {
  return Merges(plan) ? StrCat(table.grad, ".trainer_", trainer, ".pserver_", pserver)
                      : StrCat(table.grad, ".pserver_", pserver);
}

std::string UpdatedShardGradName(const PlacementPlan& plan, const TablePlacement& table, int pserver) {
  return Merges(plan) ? table.grad : SentShardGradName(plan, table, pserver, 0);
}

bool TableSendIsAwaited(const PlacementPlan& plan) { return Merges(plan); }

std::string MergedRowsName(const TablePlacement& table) { return StrCat(table.grad, ".merged"); }

std::string AskedIdsName(int number, int pserver) {
  return RequestName("prefetch_compress_in_tmp_", number, pserver);
}

std::string AnsweredRowsName(int number, int pserver) {
  return RequestName("prefetch_compress_out_tmp_", number, pserver);
}

std::string ControlName(std::string_view after) { return StrCat("__control_var@0.", after); }

}  // namespace penstock::plan
