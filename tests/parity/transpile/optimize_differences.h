// Differences in which optimize-role ops stay on trainers.
#pragma once

#include "tests/parity/transpile/case_folder.h"

namespace penstock::test {

// D-clip: ops that only read gradients stay. Fluid recognises only those of set_gradient_clip.
bool ClipsByOptimizer(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void AsSetGradientClip(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& main);
void LeaveScopesAlone(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-untrained-averages: averages of variables that no pserver updates stay. Fluid drops them.
bool AveragesUntrained(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void AsForward(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& main);
void AreToOptimize(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-local-averages: averages of parameters that pservers update stay on trainers.
bool AveragesTrained(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

// D-update-sources: updates read what ops of other roles compute, have no optimizer op, or have a condition.
bool ReadsOtherRoles(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

// D-own-counters: pservers advance the user's own counters if their schedules read them.
bool ReadsOwnCounters(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void AdvanceThere(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& main);

// D-composed-rates: ops without the schedule role compute a rate.
bool ComposesRates(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

// D-trainer-schedule: a part of the schedule stays on trainers.
bool TrainersNeedTheSchedule(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

// D-unwritten-gradients: a sum has an input that no op writes.
bool HasUnwrittenParts(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void LeaveOutUnwrittenParts(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file,
                            Program& main);

}  // namespace penstock::test
