// Chooses the policy for a server's mode and its program's further settings. No other code does.
//
//   StateMachine machine(config, PolicyOf(role, policies));
#pragma once

#include <memory>

#include "executor/pserver/machine/update_policy.h"
#include "framework/roles/pserver_facts.h"
#include "framework/text/policies.h"

namespace penstock::pserver {

// The role must be one that can be served (protocol::ReadServer).
std::unique_ptr<UpdatePolicy> PolicyOf(const roles::PserverFacts& role, const JobPolicies& policies);

}  // namespace penstock::pserver
