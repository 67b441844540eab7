// Names of what a plan makes, spelled as Fluid spells them. They are for people and for Fluid's own runtime;
// nothing here or elsewhere is ever read back from a name.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "transpiler/plan/plan.h"

namespace penstock::plan {

// w, or w.block1 if w is sliced: on pservers, and on trainers what `recv` fills.
std::string ParamPieceName(const ParamPlacement& param, int slice);
// w@GRAD or w@GRAD.block1: where a pserver merges.
std::string MergedGradName(const ParamPlacement& param, int slice);
// w@GRAD.block1.trainer_0: one trainer's part, as pservers receive it.
std::string ReceivedGradName(const ParamPlacement& param, int slice, int trainer);
// The same on the trainer's side: with the suffix only where trainers wait for each other. Fluid leaves it
// out when there is one trainer, too, and its pserver waits forever.
std::string SentGradName(const PlacementPlan& plan, const ParamPlacement& param, int slice, int trainer);

// The name under which it travels in any mode of the default dialect: what the pserver receives.
std::string PushedGradName(const PlacementPlan& plan, const ParamPlacement& param, int slice, int trainer);

// What an update of this slice calls a variable of its own (state, a temporary) where the name is another's:
// on a pserver that holds an earlier slice of the same parameter.
std::string OwnName(const ParamPlacement& param, int slice, const std::string& name);

// All names that role programs have for slices of this parameter and the program itself need not have; `own`:
// the variables that OwnName may be asked for.
std::vector<std::string> PieceNames(const PlacementPlan& plan, const ParamPlacement& param,
                                    const std::set<std::string>& own);
// A distributed table's gradient, cut by pserver. t@GRAD.pserver_0: where each gradient is applied as it
// comes. t@GRAD.trainer_1.pserver_0: where those of all trainers are merged.
std::string SentShardGradName(const PlacementPlan& plan, const TablePlacement& table, int pserver,
                              int trainer);
// What the pserver's update reads: t@GRAD if it merges.
std::string UpdatedShardGradName(const PlacementPlan& plan, const TablePlacement& table, int pserver);
// Whether what sends a table's gradient has a control variable: where pservers merge, the end of the step
// waits for it.
bool TableSendIsAwaited(const PlacementPlan& plan);
// Where a trainer adds up what it sends of one row.
std::string MergedRowsName(const TablePlacement& table);
// Request `number` of a job: the ids that one pserver is asked for, and the rows it answers with.
std::string AskedIdsName(int number, int pserver);
std::string AnsweredRowsName(int number, int pserver);

// What one trainer has told a pserver of its steps, and the parameter as it last fetched it (DC-ASGD).
std::string StepCounterName(const std::string& counter, int trainer);
std::string BackupName(const std::string& piece, int trainer);
// w.delta: what a trainer has changed of a parameter since it last sent it (geo). Of a slice: w.block1.delta.
std::string DeltaName(const ParamPlacement& param);
std::string PieceDeltaName(const ParamPlacement& param, int slice);
// w@SNAPSHOT: a parameter as all ranks had it last (local SGD), and the count of a rank's own steps.
std::string SnapshotName(std::string_view param);
inline constexpr char kLocalSgdStep[] = "@LOCAL_SGD_STEP@";
// Whether a rank's examples count, and which share of all ranks' they are.
inline constexpr char kRankLive[] = "@RANK_LIVE@";
inline constexpr char kRankShare[] = "@RANK_SHARE@";
// How many examples of this rank have counted since parameters were averaged last (local SGD).
inline constexpr char kRankExamples[] = "@RANK_EXAMPLES@";
// Where ids of rings are kept: one for each ring, or all that gen_nccl_id makes, its output first.
std::string RingIdName(int ring);
std::vector<std::string> NcclIdNames(const RankPlan& ranks);

// A control variable carries no value, only order. Fluid names them by a random number, "__control_var@0.84",
// and tools that compare its programs know them by the "@0."; ours are derived from what they order.
std::string ControlName(std::string_view after);

}  // namespace penstock::plan
