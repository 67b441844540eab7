// Differences in tables. See differences.h.
#pragma once

#include "tests/parity/transpile/differences.h"

namespace penstock::test {

// D-dependent-lookups: the lookups of a table need more than one request.
bool AsksMoreThanOnce(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

// D-table-update: the user's optimizer updates a shard, with the mean.
bool ServesShards(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void UpdateAsUsers(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-table-rows: the gradients of one row are summed before they are sent.
bool SendsShards(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void AddUpRows(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-table-padding: rows of padding_idx are zero.
bool ServesPadding(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void AnswerZeros(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-table-barrier: a half-asynchronous barrier waits only for variables that sends set.
bool AwaitsWhatNobodySets(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void AwaitWhatIsSet(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-forgotten-tables: trainers request rows from pservers that do not have them.
bool ForgetsTables(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void LookUpHere(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& main);

// D-table-v2: a lookup_table_v2 requests a distributed table.
bool DistributesV2(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

}  // namespace penstock::test
