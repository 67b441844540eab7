// The differences that concern tables (differences.h).
#pragma once

#include "tests/parity/transpile/differences.h"

namespace penstock::test {

// D-dependent-lookups: a table needs more than one request.
bool AsksMoreThanOnce(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

// D-table-update: what updates a shard is the user's optimizer, on the mean.
bool ServesShards(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void UpdateAsUsers(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-table-rows: what one row was taught is added up before it is sent.
bool SendsShards(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void AddUpRows(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-table-padding: rows of padding_idx are zero.
bool ServesPadding(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void AnswerZeros(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-table-barrier: a half-asynchronous barrier waits for sends that say when they are done.
bool AwaitsWhatNobodySets(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void AwaitWhatIsSet(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& program);

// D-forgotten-tables: looked up as if rows came from pservers, which do not have them.
bool ForgetsTables(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);
void LookUpHere(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file, Program& main);

// D-table-v2: a lookup_table_v2 asks for a distributed table.
bool DistributesV2(const CaseFolder& folder, const RoleSet& roles, const RoleFile& file);

}  // namespace penstock::test
