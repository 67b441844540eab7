// The policy of a server's mode, and of what its program asks for beyond that: the one place that chooses.
//
//   StateMachine machine(config, PolicyOf(role, policies));
#pragma once

#include <memory>

#include "executor/pserver/update_policy.h"
#include "framework/roles/server_role.h"
#include "framework/text/policies.h"

namespace penstock::pserver {

// Of a role that can be served (protocol::ReadServer).
std::unique_ptr<const UpdatePolicy> PolicyOf(const roles::ServerRole& role, const JobPolicies& policies);

}  // namespace penstock::pserver
