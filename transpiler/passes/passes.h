// Declares all passes. Each is defined in the file of its name, which shows an example. pipeline/pipelines.cc
// lists which passes run, and in which order.
#pragma once

#include "transpiler/passes/context.h"

namespace penstock::passes {

// The trainer's main program.
Result<Program> KeepClipping(const Program& in, const PassContext& context);
Result<Program> PrefetchTables(const Program& in, const PassContext& context);
Result<Program> NameGradients(const Program& in, const PassContext& context);
Result<Program> SendGradients(const Program& in, const PassContext& context);
Result<Program> SendWholeGradients(const Program& in, const PassContext& context);
Result<Program> DeclareResiduals(const Program& in, const PassContext& context);
Result<Program> NameMessages(const Program& in, const PassContext& context);
Result<Program> SendStepCounters(const Program& in, const PassContext& context);
Result<Program> NameStepNotices(const Program& in, const PassContext& context);
Result<Program> SendTableGradients(const Program& in, const PassContext& context);
Result<Program> AddSendBarrier(const Program& in, const PassContext& context);
Result<Program> AddCommunicatorBarrier(const Program& in, const PassContext& context);
Result<Program> ReceiveParams(const Program& in, const PassContext& context);
Result<Program> ReceiveWholeParams(const Program& in, const PassContext& context);
Result<Program> AddFetchBarrier(const Program& in, const PassContext& context);
Result<Program> JoinSlices(const Program& in, const PassContext& context);
Result<Program> ReadUpdatedParams(const Program& in, const PassContext& context);
Result<Program> DropOptimizers(const Program& in, const PassContext& context);
Result<Program> KeepTablesLocal(const Program& in, const PassContext& context);
Result<Program> DeclareDeltas(const Program& in, const PassContext& context);
Result<Program> DeclareDeltaSlices(const Program& in, const PassContext& context);
Result<Program> SendTouchedRows(const Program& in, const PassContext& context);
Result<Program> ScaleLossGradient(const Program& in, const PassContext& context);
Result<Program> ShareLossGradient(const Program& in, const PassContext& context);
Result<Program> WeighLossGradient(const Program& in, const PassContext& context);
Result<Program> UpdateWhileLive(const Program& in, const PassContext& context);
Result<Program> SyncBatchNorm(const Program& in, const PassContext& context);
Result<Program> AllreduceGradients(const Program& in, const PassContext& context);
Result<Program> AllreduceMeans(const Program& in, const PassContext& context);
Result<Program> AwaitGradients(const Program& in, const PassContext& context);
Result<Program> AdasumGradients(const Program& in, const PassContext& context);
Result<Program> HalveGradients(const Program& in, const PassContext& context);
Result<Program> AccumulateGradients(const Program& in, const PassContext& context);
Result<Program> UpdateAtFirstPlace(const Program& in, const PassContext& context);
Result<Program> AllreduceUpdates(const Program& in, const PassContext& context);
Result<Program> ApplyMeanUpdate(const Program& in, const PassContext& context);
Result<Program> AverageEvery(const Program& in, const PassContext& context);
Result<Program> AverageAdaptively(const Program& in, const PassContext& context);

// The trainer's startup program; InitStepCounters also runs on a pserver's.
Result<Program> InitStepCounters(const Program& in, const PassContext& context);
Result<Program> ReceiveInitialParams(const Program& in, const PassContext& context);
Result<Program> DropServerState(const Program& in, const PassContext& context);
Result<Program> ShareStartValues(const Program& in, const PassContext& context);
Result<Program> FakeInitTables(const Program& in, const PassContext& context);
Result<Program> InitResiduals(const Program& in, const PassContext& context);
Result<Program> AnnounceInitialParams(const Program& in, const PassContext& context);
Result<Program> GenerateNcclId(const Program& in, const PassContext& context);
Result<Program> InitRings(const Program& in, const PassContext& context);
Result<Program> InitDeviceRings(const Program& in, const PassContext& context);
Result<Program> BroadcastParams(const Program& in, const PassContext& context);
Result<Program> SnapshotParams(const Program& in, const PassContext& context);
Result<Program> StartLive(const Program& in, const PassContext& context);
Result<Program> StartAdaptiveSteps(const Program& in, const PassContext& context);
Result<Program> CountLocalSteps(const Program& in, const PassContext& context);
Result<Program> StartGradientSums(const Program& in, const PassContext& context);

// A pserver's main program; the first pass starts from an empty program.
Result<Program> DeclareSlices(const Program& in, const PassContext& context);
Result<Program> PlaceLrSchedule(const Program& in, const PassContext& context);
Result<Program> PlaceClipping(const Program& in, const PassContext& context);
Result<Program> PlaceOptimizers(const Program& in, const PassContext& context);
Result<Program> ServeGradients(const Program& in, const PassContext& context);
Result<Program> MergeGradients(const Program& in, const PassContext& context);
Result<Program> QuoteGradients(const Program& in, const PassContext& context);
Result<Program> CountSteps(const Program& in, const PassContext& context);
Result<Program> CompensateGradients(const Program& in, const PassContext& context);
Result<Program> HoldParams(const Program& in, const PassContext& context);
Result<Program> AddDeltas(const Program& in, const PassContext& context);
Result<Program> ServeDeltas(const Program& in, const PassContext& context);
Result<Program> HoldStartValues(const Program& in, const PassContext& context);
Result<Program> ServeTables(const Program& in, const PassContext& context);
Result<Program> MergeTableGradients(const Program& in, const PassContext& context);

// A pserver's startup program; the first pass starts from the pserver's finished main program.
Result<Program> InitPserverSlices(const Program& in, const PassContext& context);
Result<Program> InitBackups(const Program& in, const PassContext& context);

}  // namespace penstock::passes
