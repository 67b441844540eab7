// Differences in which of the ops that optimize stay on trainers.
#pragma once

#include "tests/parity/transpile/case_folder.h"

namespace penstock::test {

// D-clip: ops on gradients alone stay, whatever made them. Fluid knows those of set_gradient_clip.
bool ClipsByOptimizer(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void AsSetGradientClip(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& main);
void LeaveScopesAlone(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-untrained-averages: averages of what no pserver updates stay. Fluid drops them.
bool AveragesUntrained(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void AsForward(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& main);
void AreToOptimize(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-own-counters: pservers advance the counters of the user's own that their schedules read.
bool ReadsOwnCounters(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void AdvanceThere(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& main);

// D-composed-rates: ops without a schedule's mark compute a rate.
bool ComposesRates(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

// D-trainer-schedule: something of the schedule stays on trainers.
bool TrainersNeedTheSchedule(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

// D-unwritten-gradients: a sum has a part that nobody writes.
bool HasUnwrittenParts(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void LeaveOutUnwrittenParts(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file,
                            Program& main);

}  // namespace penstock::test
