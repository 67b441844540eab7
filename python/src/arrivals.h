// Parameters that arrive after the run that has asked for them (executor/plan/receive_late.h). Python reads
// and writes a variable's memory only after these functions have waited for what is on its way there.
#pragma once

namespace penstock {
class RpcClient;
class Variable;
}  // namespace penstock

namespace penstock::python {

// The client of this process whose runs may leave parameters on their way; null: there is none any more.
void SetArrivals(RpcClient* client);

// Call with the GIL held, which is released during a wait. Ctrl-C ends the wait and the trainer's job, as in
// a run. Throws the error of a parameter that cannot arrive. Costs a look at a flag if nothing is on its way.
void AwaitArrival(const Variable& variable);
void AwaitAllArrivals();

// From now on a run ends only when its parameters have arrived, because Python knows the address of one and
// reads it without a call.
void ArriveInRuns();

}  // namespace penstock::python
