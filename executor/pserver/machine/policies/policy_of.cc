#include "executor/pserver/machine/policies/policy_of.h"

#include "executor/pserver/machine/policies/async_policy.h"
#include "executor/pserver/machine/policies/backup_policy.h"
#include "executor/pserver/machine/policies/staleness_policy.h"
#include "executor/pserver/machine/policies/sync_policy.h"

namespace penstock::pserver {

std::unique_ptr<UpdatePolicy> PolicyOf(const roles::PserverFacts& role, const JobPolicies& policies) {
  if (role.mode == roles::ServeMode::kSync) {
    if (policies.backup_trainers > 0) return std::make_unique<BackupPolicy>();
    return std::make_unique<SyncPolicy>();
  }
  if (policies.staleness) return std::make_unique<StalenessPolicy>(*policies.staleness);
  return std::make_unique<AsyncPolicy>();  // geo-SGD too: its gradients are differences
}

}  // namespace penstock::pserver
