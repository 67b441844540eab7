// Differences in what the flags of a mode mean, and in modes where pservers do not wait. See differences.h.
#pragma once

#include "tests/parity/transpile/differences.h"

namespace penstock::test {

// D-sync-mode: pservers are told the mode that the trainers run in.
bool ToldAnotherMode(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void TellTheMode(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// A configuration that asks for both; Fluid obeys each part somewhere, the default dialect refuses it.
bool SaysBothModes(const plan::TranspileConfig& config);

// D-not-async: with completely_not_async something ends a trainer's step.
bool NotAsyncHangs(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void EndSteps(plan::TranspileConfig& config);

// D-not-async-steps: and a schedule counts steps, and the gradients of one trainer are merged too.
bool StepsDiffer(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

// D-async-schedule: the counters of trainers begin as one machine's does.
bool BeginsACounter(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void BeginAsOneMachine(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file,
                       Program& program);

// D-step-notices: pservers that compute no counted rate are told of no step.
bool TellsTooMany(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void TellWhoCounts(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-shared-startup: one object for all roles changes nothing.
bool GettersChangedIt(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void MakeByAnotherObject(plan::TranspileConfig& config);

}  // namespace penstock::test
