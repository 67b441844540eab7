// Names of the variables that a plan creates, spelled as in Fluid. They are for people and for Fluid's
// runtime; no code parses them.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "transpiler/plan/plan.h"

namespace penstock::plan {

// w, or w.block1 if w is sliced: the variable on the pserver, and the output of `recv` on the trainer.
std::string ParamPieceName(const ParamPlacement& param, int slice);
// w@GRAD or w@GRAD.block1: the merged gradient on a pserver.
std::string MergedGradName(const ParamPlacement& param, int slice);
// w@GRAD.block1.trainer_0: one trainer's part, as pservers receive it.
std::string ReceivedGradName(const ParamPlacement& param, int slice, int trainer);
// The same on the trainer: with the suffix only in modes where trainers wait for each other. Fluid omits the
// suffix for a single trainer too, and its pserver then waits forever.
std::string SentGradName(const PlacementPlan& plan, const ParamPlacement& param, int slice, int trainer);

// The name of the gradient's message in any mode of the default dialect, as the pserver receives it.
std::string PushedGradName(const PlacementPlan& plan, const ParamPlacement& param, int slice, int trainer);

// The name of a variable that belongs to the update of one slice (state, a temporary), on a pserver where an
// earlier slice of the same parameter has the plain name.
std::string OwnName(const ParamPlacement& param, int slice, const std::string& name);

// All names that role programs give to slices of this parameter, in addition to the source program's names.
// `own`: the variables for which OwnName may be called.
std::vector<std::string> PieceNames(const PlacementPlan& plan, const ParamPlacement& param,
                                    const std::set<std::string>& own);
// The part of a distributed table's gradient for one pserver: t@GRAD.pserver_0 if each gradient is applied
// when it arrives, t@GRAD.trainer_1.pserver_0 if the gradients of all trainers are merged.
std::string SentShardGradName(const PlacementPlan& plan, const TablePlacement& table, int pserver,
                              int trainer);
// The gradient that the pserver's update reads: t@GRAD if the pserver merges.
std::string UpdatedShardGradName(const PlacementPlan& plan, const TablePlacement& table, int pserver);
// Whether the send of a table's gradient has a control variable: if pservers merge, the end of the step waits
// for the send.
bool TableSendIsAwaited(const PlacementPlan& plan);
// A distributed table's gradient in which the trainer has summed duplicate rows.
std::string MergedRowsName(const TablePlacement& table);
// Request `number` of a job: the ids requested from one pserver, and the rows with which it answers.
std::string AskedIdsName(int number, int pserver);
std::string AnsweredRowsName(int number, int pserver);

// The number of steps that one trainer has reported to a pserver, and the parameter as that trainer last
// fetched it (DC-ASGD).
std::string StepCounterName(const std::string& counter, int trainer);
std::string BackupName(const std::string& piece, int trainer);
// w.delta: a trainer's change of a parameter since its last send (geo). For a slice: w.block1.delta.
std::string DeltaName(const ParamPlacement& param);
std::string PieceDeltaName(const ParamPlacement& param, int slice);
// w@SNAPSHOT: a parameter as all ranks last had it (local SGD). kLocalSgdStep: the counter of a rank's own
// steps.
std::string SnapshotName(std::string_view param);
inline constexpr char kLocalSgdStep[] = "@LOCAL_SGD_STEP@";
// Whether a rank's examples count, and their share of all ranks' examples.
inline constexpr char kRankLive[] = "@RANK_LIVE@";
inline constexpr char kRankShare[] = "@RANK_SHARE@";
// The number of this rank's examples that have counted since the last average of parameters (local SGD).
inline constexpr char kRankExamples[] = "@RANK_EXAMPLES@";
// The variables that hold ids of rings: the one for a ring, or all that gen_nccl_id makes, its output first.
std::string RingIdName(int ring);
std::vector<std::string> NcclIdNames(const RankPlan& ranks);

// A control variable has no value and only orders ops. Fluid's names contain a random number,
// "__control_var@0.84"; tools that compare its programs recognise the "@0.". Our names are derived from
// `after`.
std::string ControlName(std::string_view after);

}  // namespace penstock::plan
