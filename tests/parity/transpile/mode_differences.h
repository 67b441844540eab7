// Differences in the meaning of mode flags, and in modes in which pservers do not wait. See differences.h.
#pragma once

#include "tests/parity/transpile/differences.h"

namespace penstock::test {

// D-sync-mode: pservers get the mode in which the trainers run.
bool ToldAnotherMode(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void TellTheMode(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// A configuration that requests both modes. Fluid obeys each part somewhere; the default dialect rejects it.
bool SaysBothModes(const plan::TranspileConfig& config);

// D-not-async: with completely_not_async, a barrier ends a trainer's step.
bool NotAsyncHangs(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void EndSteps(plan::TranspileConfig& config);

// D-not-async-steps: with completely_not_async, a schedule counts steps, and the gradients of a single
// trainer are merged too.
bool StepsDiffer(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

// D-async-schedule: the trainers' counters start like a single machine's.
bool BeginsACounter(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void BeginAsOneMachine(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file,
                       Program& program);

// D-step-notices: pservers that compute no rate that counts steps get no step notices.
bool TellsTooMany(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void TellWhoCounts(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-shared-startup: using one transpiler object for all roles makes no difference.
bool GettersChangedIt(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void MakeByAnotherObject(plan::TranspileConfig& config);

}  // namespace penstock::test
